// Package pki makes the certificates of a cluster, and reads those that a process shows.
//
// Keys are ECDSA on P-256 in PKCS #8, certificates X.509 version 3, both in PEM (RFC 5280, RFC 5958, RFC 7468). Nothing of it goes to a disk here: the
// caller decides where a key may be.
package pki
