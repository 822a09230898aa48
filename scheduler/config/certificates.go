package config

import "fmt"

// certificates checks auth.certificates, and who shows one.
func (v *validator) certificates(c *Config) {
	if len(c.Auth.Certificates) > 0 && c.TLS.ClientCA == "" {
		v.say("auth.certificates", "needs tls.client_ca: without it nobody is asked for a certificate")
	}
	seen := map[string]bool{}
	for i, e := range c.Auth.Certificates {
		key := fmt.Sprintf("auth.certificates[%d]", i)
		if (e.CN == "") == (e.SAN == "") {
			v.say(key, "want one of cn (the common name) and san (a subject alternative name)")
			continue
		}
		v.principal(key, e.Principal)
		name := "cn " + e.CN
		if e.SAN != "" {
			name = "san " + e.SAN
		}
		v.check(!seen[name], key, name, "is there twice")
		seen[name] = true
	}
	x := c.Executors
	switch {
	case (x.TLSCert == "") != (x.TLSKey == ""):
		v.say("executors", "tls_cert and tls_key belong together; only one of them is set")
	case c.TLS.ClientCA != "" && x.Local > 0 && x.TLSCert == "":
		v.say("executors", "tls.client_ca asks for certificates, and the executors that this scheduler starts have none: set executors.tls_cert and executors.tls_key, or executors.local: 0")
	case c.TLS.ClientCA == "" && x.TLSCert != "":
		v.say("executors.tls_cert", "is for a scheduler that asks for certificates (tls.client_ca)")
	}
	v.files(map[string]string{"executors.tls_cert": x.TLSCert, "executors.tls_key": x.TLSKey})
}

// principal checks the name of one.
func (v *validator) principal(key, name string) {
	v.check(name != "" && len(name) <= 128, key+".principal", name, "want a name of at most 128 bytes")
	v.check(!Reserved(name), key+".principal", name, "names that begin with "+ReservedPrincipals+" are the scheduler's own")
}
