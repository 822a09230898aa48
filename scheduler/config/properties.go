package config

import (
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// property is one that catalogs and stores are configured with. Names are those of PyIceberg, and of Iceberg's Java properties where PyIceberg has none.
type property struct {
	name   string
	secret bool   // belongs under secret
	of     string // the type of catalog that it is about; "": about storage
	check  func(string) string
}

// headerPrefix starts the properties that are HTTP headers of a REST catalog.
const headerPrefix = "header."

var properties = []property{
	{name: "prefix", of: CatalogREST},
	{name: "oauth2-server-uri", of: CatalogREST, check: isURL},
	{name: "scope", of: CatalogREST},
	{name: "audience", of: CatalogREST},
	{name: "resource", of: CatalogREST},
	{name: "rest.sigv4-enabled", of: CatalogREST, check: isBool},
	{name: "rest.signing-region", of: CatalogREST},
	{name: "rest.signing-name", of: CatalogREST},
	{name: "credential", of: CatalogREST, secret: true},
	{name: "token", of: CatalogREST, secret: true},

	{name: "glue.region", of: CatalogGlue},
	{name: "glue.endpoint", of: CatalogGlue, check: isURL},
	{name: "glue.id", of: CatalogGlue},
	{name: "glue.profile-name", of: CatalogGlue},
	{name: "glue.skip-archive", of: CatalogGlue, check: isBool},
	{name: "glue.max-retries", of: CatalogGlue, check: isCount},
	{name: "glue.access-key-id", of: CatalogGlue, secret: true},
	{name: "glue.secret-access-key", of: CatalogGlue, secret: true},
	{name: "glue.session-token", of: CatalogGlue, secret: true},

	{name: "s3.endpoint", check: isURL},
	{name: "s3.region"},
	{name: "s3.path-style-access", check: isBool},
	{name: "s3.force-virtual-addressing", check: isBool},
	{name: "s3.role-arn"},
	{name: "s3.role-session-name"},
	{name: "s3.access-key-id", secret: true},
	{name: "s3.secret-access-key", secret: true},
	{name: "s3.session-token", secret: true},

	{name: "gcs.service.host", check: isURL},
	{name: "gcs.project-id"},
	{name: "gcs.user-project"},
	{name: "gcs.no-auth", check: isBool},
	{name: "gcs.impersonate.service-account"},
	{name: "gcs.oauth2.token-expires-at", check: isMillis},
	{name: "gcs.oauth2.token", secret: true},
	{name: "gcs.jsonkey", secret: true},
}

func isURL(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "want http://host:port or https://host"
	}
	if u.User != nil {
		return "must not hold a user or password"
	}
	return ""
}

func isMillis(s string) string {
	if _, err := strconv.ParseInt(s, 10, 64); err != nil {
		return "want milliseconds since 1970"
	}
	return ""
}

func isBool(s string) string {
	if _, err := strconv.ParseBool(s); err != nil {
		return "want true or false"
	}
	return ""
}

func isCount(s string) string {
	if n, err := strconv.Atoi(s); err != nil || n < 1 || n > 100 {
		return "want a number, 1 to 100"
	}
	return ""
}

// propertyName finds the name that is meant: variables of the environment can hold neither dots nor dashes.
func propertyName(name string) string {
	words := strings.NewReplacer(".", "_", "-", "_")
	for _, p := range properties {
		if words.Replace(p.name) == name {
			return p.name
		}
	}
	return name
}

// flat decodes a map of names with dots. Dots may be written as levels, too: {s3: {region: x}} is {s3.region: x}.
func (d *decoder) flat(key string, in any, v reflect.Value) {
	if in == nil {
		return
	}
	m, ok := in.(map[string]any)
	if !ok {
		d.fail(key, "want keys below it, not one value") // which may be a secret that lost its key
		return
	}
	out := reflect.MakeMap(v.Type())
	d.flatten(key, "", m, out)
	v.Set(out)
}

func (d *decoder) flatten(key, prefix string, m map[string]any, out reflect.Value) {
	secrets := out.Type().Elem() == secretType
	for _, name := range sortedKeys(m) {
		full := prefix + name
		sub, isMap := m[name].(map[string]any)
		if isMap && (!secrets || !isReference(sub)) && len(sub) > 0 {
			d.flatten(key, full+".", sub, out)
			continue
		}
		full = propertyName(full)
		elem := reflect.New(out.Type().Elem()).Elem()
		switch in := m[name].(type) {
		case nil:
			continue
		case bool, int, int64, uint64, float64:
			if secrets {
				d.secret(join(key, full), in, elem)
			} else {
				elem.SetString(text(in))
			}
		default:
			d.value(join(key, full), in, elem, false)
		}
		if out.MapIndex(reflect.ValueOf(full)).IsValid() {
			d.fail(join(key, full), "given twice: with dots, and as levels")
		}
		out.SetMapIndex(reflect.ValueOf(full), elem)
	}
}

// isReference says whether a map is meant to be {file: PATH} or {env: NAME}, rightly written or not.
func isReference(m map[string]any) bool {
	for k, v := range m {
		if _, isMap := v.(map[string]any); isMap || k != "file" && k != "env" {
			return false
		}
	}
	return true
}

// properties checks the properties and secrets of a catalog that may have those of storage, and those of its type.
func (v *validator) properties(key string, c *Catalog, further ...string) {
	rest := c.Type == CatalogREST
	known := func(secret bool) []string {
		names := slices.Clone(further)
		if !secret {
			names = nil
		}
		for _, p := range properties {
			if p.secret == secret && (p.of == "" || p.of == c.Type) {
				names = append(names, p.name)
			}
		}
		return names
	}
	for _, name := range sortedKeys(c.Properties) {
		at := key + ".properties." + name
		p, found := propertyOf(name)
		switch {
		case rest && strings.HasPrefix(name, headerPrefix):
			v.header(at, name, c.Properties[name])
		case found && p.secret:
			v.say(at, "is a secret; write it under secret, as {file: PATH} or {env: NAME}")
		case !slices.Contains(known(false), name):
			v.say(at, "unknown property"+suggest(name, known(false)))
		case p.check != nil:
			if problem := p.check(c.Properties[name]); problem != "" {
				v.say(at, problem)
			}
		}
	}
	for _, name := range sortedKeys(c.Secret) {
		if !slices.Contains(known(true), name) {
			v.say(key+".secret."+name, "unknown secret"+suggest(name, known(true)))
		}
	}
	for _, of := range []string{"s3.", "glue."} {
		v.together(key, c, of+"access-key-id", of+"secret-access-key")
		if _, has := c.Secret[of+"session-token"]; has {
			v.together(key, c, of+"session-token", of+"access-key-id")
		}
	}
	if rest {
		_, credential := c.Secret["credential"]
		_, token := c.Secret["token"]
		if credential && token {
			v.say(key+".secret", "credential and token: one of them, the first gets a token by itself")
		}
	}
}

// Bounds of credentials.duration: those of a session of STS.
const (
	minCredentials = 15 * time.Minute
	maxCredentials = time.Hour
)

func (c *Credentials) fill() {
	if c.Mode == "" {
		c.Mode = CredentialsAuto
	}
	if c.Duration == 0 {
		c.Duration = maxCredentials
	}
}

func (v *validator) credentials(key string, c Credentials, rest bool) {
	modes := []string{CredentialsAuto, CredentialsSTS, CredentialsPresigned}
	if rest {
		modes = append(modes, CredentialsVended)
	}
	v.oneOf(key+".mode", c.Mode, modes...)
	v.check(c.Duration >= minCredentials && c.Duration <= maxCredentials, key+".duration", c.Duration, fmt.Sprintf("want %s to %s", minCredentials, maxCredentials))
	if c.Mode == CredentialsSTS && c.RoleARN == "" {
		v.say(key+".role_arn", "missing; sessions are made of a role, arn:aws:iam::ACCOUNT:role/NAME")
	}
	if (c.Mode == CredentialsPresigned || c.Mode == CredentialsVended) && c.RoleARN != "" {
		v.say(key+".role_arn", "is not for mode "+c.Mode)
	}
	if c.TrustEndpoint && c.Mode != CredentialsVended {
		v.say(key+".trust_endpoint", "is for mode vended, in which a catalog of type rest names the store")
	}
	v.check(c.RoleARN == "" || strings.HasPrefix(c.RoleARN, "arn:") && strings.Contains(c.RoleARN, ":role/"), key+".role_arn", c.RoleARN, "want arn:aws:iam::ACCOUNT:role/NAME")
	if c.STSEndpoint != "" {
		if problem := isURL(c.STSEndpoint); problem != "" {
			v.say(key+".sts_endpoint", problem)
		}
	}
	if c.RoleARN == "" && (c.STSEndpoint != "" || c.ExternalID != "") {
		v.say(key+".role_arn", "missing; sts_endpoint and external_id are for sessions of a role")
	}
}

func (v *validator) together(key string, c *Catalog, one, other string) {
	_, hasOne := c.Secret[one]
	_, hasOther := c.Secret[other]
	if hasOne != hasOther {
		v.say(key+".secret", fmt.Sprintf("%s and %s belong together", one, other))
	}
}

func (v *validator) header(key, name, value string) {
	header := strings.TrimPrefix(name, headerPrefix)
	bad := func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r) }
	switch {
	case header == "" || strings.ContainsFunc(header, bad):
		v.say(key, "not the name of an HTTP header")
	case strings.EqualFold(header, "Authorization"), strings.EqualFold(header, "Cookie"):
		v.say(key, "is a secret; write token or credential under secret")
	case strings.ContainsAny(value, "\r\n\x00"):
		v.say(key, "must be one line")
	}
}

func propertyOf(name string) (property, bool) {
	for _, p := range properties {
		if p.name == name {
			return p, true
		}
	}
	return property{}, false
}
