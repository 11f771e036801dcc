//go:build !unix

package clientconfig

const nonBlocking = 0
