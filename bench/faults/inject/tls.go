package inject

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// CertFiles are where a certificate, its key and the authority that signed it lie.
type CertFiles struct{ CA, Cert, Key string }

// Flaw is what is wrong with a certificate.
type Flaw string

const (
	NoFlaw    Flaw = ""
	Expired   Flaw = "expired"
	OtherHost Flaw = "other host"
)

// Certificate makes an authority and has it sign a certificate for the loopback
// with at most one flaw.
func Certificate(dir string, flaw Flaw) (CertFiles, error) {
	files := CertFiles{filepath.Join(dir, "ca.pem"), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	now := time.Now()
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "faults"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: now.Add(-48 * time.Hour), NotAfter: now.Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "ledger"}, DNSNames: []string{"ledger.invalid"},
		NotBefore: now.Add(-48 * time.Hour), NotAfter: now.Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if flaw != OtherHost {
		leaf.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	if flaw == Expired {
		leaf.NotAfter = now.Add(-24 * time.Hour)
	}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return files, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return files, err
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	if err != nil {
		return files, err
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, ca, &key.PublicKey, caKey)
	if err != nil {
		return files, err
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return files, err
	}
	for _, f := range []struct {
		path, kind string
		der        []byte
	}{{files.CA, "CERTIFICATE", caDER}, {files.Cert, "CERTIFICATE", der}, {files.Key, "EC PRIVATE KEY", keyDER}} {
		if err := os.WriteFile(f.path, pem.EncodeToMemory(&pem.Block{Type: f.kind, Bytes: f.der}), 0o600); err != nil {
			return files, err
		}
	}
	return files, nil
}
