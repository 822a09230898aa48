package redact_test

import (
	"bytes"
	"errors"
	"log/slog"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/internal/redact"
)

const canary = "canary-7f31c2"

func TestText_TakesOutEverySecretWhole(t *testing.T) { // T7
	r := &redact.Redactor{}
	r.Add(canary, canary+"-longer", "  spaced-secret\n", "short", "", `with "quotes" & <tags>`)
	for in, want := range map[string]string{
		"x " + canary + " y " + canary: "x [redacted] y [redacted]",
		canary + "-longer!":            "[redacted]!",
		"a spaced-secret":              "a [redacted]",
		"short":                        "short",
		`say: with "quotes" & <tags>.`: "say: [redacted].",
		"nothing here":                 "nothing here",
		"":                             "",
	} {
		require.Equal(t, want, r.Text(in))
	}
	var none *redact.Redactor
	require.Equal(t, canary, none.Text(canary))
	require.Nil(t, r.Texts(nil))
	list := []string{canary}
	require.Equal(t, []string{redact.Mark}, r.Texts(list))
	require.Equal(t, []string{canary}, list)
}

func TestSettings_ShowOnlyWhatIsKnownToBeHarmless(t *testing.T) { // T7
	r := &redact.Redactor{}
	r.Add("known-secret")
	require.Nil(t, r.Settings(nil))
	require.Equal(t, map[string]string{
		"signet.planner": "static", "signet.Access-Key": "[redacted]", "signet.x.password": "[redacted]", "s3.region": "[redacted]", "signet.note": "a [redacted]",
	}, r.Settings(map[string]string{
		"signet.planner": "static", "signet.Access-Key": canary, "signet.x.password": "", "s3.region": canary, "signet.note": "a known-secret",
	}))
}

func TestHandler_CleansMessagesAttributesGroupsAndErrors(t *testing.T) { // T7
	r := &redact.Redactor{}
	r.Add(canary)
	var out bytes.Buffer
	log := slog.New(r.Handler(slog.NewJSONHandler(&out, nil))).With("from", canary, slog.Group("g", "inner", canary))
	log.WithGroup("deep").Info("told "+canary, "job", "j1", "error", errors.New("bad "+canary), "list", []string{canary}, "n", 3, "token", "unknown-secret-value",
		"any", struct{ A int }{1}, "struct", struct{ B string }{canary}, "later", lazy{})
	require.NotContains(t, out.String(), canary)
	require.NotContains(t, out.String(), "unknown-secret-value")
	for _, kept := range []string{`"job":"j1"`, `"n":3`, `"A":1`, `"inner":"[redacted]"`, `told [redacted]`, `bad [redacted]`, `lazy [redacted]`} {
		require.Contains(t, out.String(), kept)
	}
}

type lazy struct{}

func (lazy) LogValue() slog.Value { return slog.StringValue("lazy " + canary) }

func TestRedactor_IsSafeForConcurrentUse(t *testing.T) {
	r := &redact.Redactor{}
	var wg sync.WaitGroup
	for _, v := range []string{"secret-a", "secret-b", "secret-c"} {
		wg.Go(func() { r.Add(v) })
		wg.Go(func() { r.Text("some secret-a text") })
	}
	wg.Wait()
	require.Equal(t, "[redacted][redacted][redacted]", r.Text("secret-asecret-bsecret-c"))
}
