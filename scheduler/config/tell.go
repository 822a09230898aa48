package config

import (
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Receiver is where messages go: to a file, or by HTTP. Neither: nowhere.
type Receiver struct {
	// File gets one JSON document per line.
	File string `koanf:"file" kind:"path"`
	// URL gets each as a POST.
	URL string `koanf:"url"`
	// Headers of these, such as Authorization.
	Headers map[string]Secret `koanf:"headers"`
	// Timeout of one request; 10 s if 0.
	Timeout time.Duration `koanf:"timeout"`
	// MaxPending messages wait while the receiver is away; further ones are dropped. 10,000 if 0.
	MaxPending int `koanf:"max_pending"`
}

// Enabled says whether there is a receiver.
func (r *Receiver) Enabled() bool { return r.File != "" || r.URL != "" }

// Lineage are OpenLineage events.
type Lineage struct {
	File       string            `koanf:"file" kind:"path"`
	URL        string            `koanf:"url"`
	Headers    map[string]Secret `koanf:"headers"`
	Timeout    time.Duration     `koanf:"timeout"`
	MaxPending int               `koanf:"max_pending"`
	// Namespace of jobs; signet-<cluster> by default.
	Namespace string `koanf:"namespace"`
	// IncludeSQL sends statements, which may hold values, with the events.
	IncludeSQL bool `koanf:"include_sql"`
}

// Receiver is where the events go.
func (l *Lineage) Receiver() Receiver {
	return Receiver{File: l.File, URL: l.URL, Headers: l.Headers, Timeout: l.Timeout, MaxPending: l.MaxPending}
}

func (v *validator) receivers(c *Config) {
	v.receiver("lineage", c.Lineage.Receiver(), nil)
	v.receiver("commit_reports", c.CommitReports, []string{"namespace", "table"})
	v.check(len(c.Lineage.Namespace) <= 256, "lineage.namespace", c.Lineage.Namespace, "want at most 256 bytes")
}

// receiver never repeats the URL: somebody may have put a token into it.
func (v *validator) receiver(key string, r Receiver, placeholders []string) {
	v.check(r.Timeout >= 0, key+".timeout", r.Timeout, "want more than 0")
	v.check(r.MaxPending >= 0 && r.MaxPending <= 1_000_000, key+".max_pending", r.MaxPending, "want 1 to 1000000")
	if r.File != "" && r.URL != "" {
		v.say(key, "has a file and a url; one of them is where it goes")
	}
	if r.URL == "" {
		if len(r.Headers) > 0 {
			v.say(key+".headers", "are for a url, and there is none")
		}
		return
	}
	plain := r.URL
	for _, p := range placeholders {
		plain = strings.ReplaceAll(plain, "{"+p+"}", p)
	}
	u, err := url.Parse(plain)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.ContainsAny(plain, "{}") {
		want := "want http://host/path or https://host/path"
		if len(placeholders) > 0 {
			want += ", with {" + strings.Join(placeholders, "} and {") + "} for the table's name"
		}
		v.say(key+".url", want)
		return
	}
	if u.User != nil {
		v.say(key+".url", "holds credentials; take them out and write headers: {Authorization: {file: PATH}} or {env: NAME}")
	}
	if len(r.Headers) > 0 && u.Scheme == "http" && !IsLoopback(u.Hostname()) {
		v.say(key+".url", "headers would go over the network in the clear; use https")
	}
	seen := map[string]bool{}
	for _, name := range sortedKeys(r.Headers) {
		canonical := http.CanonicalHeaderKey(name)
		v.check(!seen[canonical], key+".headers", name, "is there twice")
		seen[canonical] = true
	}
}
