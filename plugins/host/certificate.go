package host

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"time"
)

// certEnv is where go-plugin's AutoMTLS puts the host's certificate, PEM. The plugin answers with its own in the handshake.
const certEnv = "PLUGIN_CLIENT_CERT"

// certificate makes the host's half of AutoMTLS: a key for one plugin and one run. go-plugin's own has the curve P-521, which BoringSSL, and with it
// gRPC of every language but Go and Java, refuses; and it is ten times slower.
func certificate() (config *tls.Config, pemText string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, "", err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "localhost", Organization: []string{"Signet"}},
		DNSNames: []string{"localhost"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().AddDate(30, 0, 0), // as long as the process may live
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, "", err
	}
	config = &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		ClientAuth:   tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12, ServerName: "localhost",
		// go-plugin replaces both by the certificate of the handshake; until then, and for a plugin without one, nobody is believed.
		RootCAs: x509.NewCertPool(), ClientCAs: x509.NewCertPool(),
	}
	return config, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), nil
}
