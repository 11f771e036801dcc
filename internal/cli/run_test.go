package cli

import "testing"

func TestOnlyThisMachineReachesLoopback(t *testing.T) {
	for addr, want := range map[string]bool{
		":0": true, "127.0.0.1:0": true, "localhost:8080": true, "LocalHost:1": true, "[::1]:0": true, "127.8.9.1:1": true, "[::ffff:127.0.0.1]:1": true,
		"0.0.0.0:0": false, "[::]:0": false, "192.168.1.2:80": false, "example.com:1": false, "localhost.example.com:1": false, "8080": false,
	} {
		if got := onLoopback(addr); got != want {
			t.Errorf("onLoopback(%q) = %t", addr, got)
		}
	}
}
