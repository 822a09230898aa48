package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"regexp"
	"strings"
	"time"
)

// skew is how far back certificates are valid already: other machines' clocks are late.
const skew = 5 * time.Minute

// Pair is a certificate and its private key, both PEM.
type Pair struct{ Cert, Key []byte }

// Authority signs the certificates of one cluster.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pair Pair
}

// Subject is whom a certificate is for.
type Subject struct {
	Name   string   // the common name, by which auth.certificates knows it
	Hosts  []string // names and addresses that it serves at
	Server bool     // may be shown by a server
	Client bool     // may be shown by a client
}

// NewAuthority makes an authority that lasts from now for some days.
func NewAuthority(name string, now time.Time, days int) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	tmpl, err := template(name, now, days)
	if err != nil {
		return nil, err
	}
	tmpl.IsCA, tmpl.BasicConstraintsValid, tmpl.MaxPathLenZero = true, true, true
	tmpl.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	a := &Authority{key: key}
	if a.pair, a.cert, err = sign(tmpl, tmpl, key, key); err != nil {
		return nil, err
	}
	return a, nil
}

// Pair is the authority's own.
func (a *Authority) Pair() Pair { return a.pair }

// Issue makes a key and a certificate for it. It does not last longer than the authority.
func (a *Authority) Issue(s Subject, now time.Time, days int) (Pair, error) {
	tmpl, err := template(s.Name, now, days)
	if err != nil {
		return Pair{}, err
	}
	if tmpl.NotAfter.After(a.cert.NotAfter) {
		tmpl.NotAfter = a.cert.NotAfter
	}
	tmpl.BasicConstraintsValid, tmpl.KeyUsage = true, x509.KeyUsageDigitalSignature
	if s.Server {
		tmpl.ExtKeyUsage = append(tmpl.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	if s.Client {
		tmpl.ExtKeyUsage = append(tmpl.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	for _, h := range s.Hosts {
		if err := CheckHost(h); err != nil {
			return Pair{}, err
		}
		if ip := net.ParseIP(h); ip != nil {
			tmpl.IPAddresses = append(tmpl.IPAddresses, ip)
		} else {
			tmpl.DNSNames = append(tmpl.DNSNames, h)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	pair, _, err := sign(tmpl, a.cert, key, a.key)
	return pair, err
}

func template(name string, now time.Time, days int) (*x509.Certificate, error) {
	if name == "" || len(name) > 64 { // RFC 5280, ub-common-name
		return nil, fmt.Errorf("certificate: the name %q: want 1 to 64 bytes", name)
	}
	if days < 1 {
		return nil, fmt.Errorf("certificate: valid for %d days: want at least 1", days)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	return &x509.Certificate{
		SerialNumber: serial.Add(serial, big.NewInt(1)), Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-skew), NotAfter: now.AddDate(0, 0, days),
	}, nil
}

func sign(tmpl, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) (Pair, *x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, tmpl, parent, &key.PublicKey, signer)
	if err != nil {
		return Pair{}, nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return Pair{}, nil, err
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, nil, err
	}
	return Pair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), Key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}),
	}, cert, nil
}

var label = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$`)

// CheckHost says what is wrong with the name or address of a machine (RFC 1123).
func CheckHost(h string) error {
	if net.ParseIP(h) != nil {
		return nil
	}
	labels := strings.Split(h, ".")
	for _, l := range labels {
		if !label.MatchString(l) {
			return fmt.Errorf("host %q: want a name such as sched-1.example.org, or an address, without a port", h)
		}
	}
	if len(h) > 253 {
		return errors.New("host: a name of more than 253 bytes")
	}
	if strings.Trim(labels[len(labels)-1], "0123456789") == "" { // 10.0.0, or 1.2.3.400
		return fmt.Errorf("host %q: neither an address nor a name", h)
	}
	return nil
}
