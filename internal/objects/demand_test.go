package objects_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/internal/objects/objectstest"
)

// The answer to a look at an object has no body: why it was refused is found out all the same.
func TestHead_SaysWhyItWasRefused(t *testing.T) {
	const key, secret = "canary-key", "canary-secret" // as Props have them
	for name, tc := range map[string]struct {
		account objectstest.Account
		is      error
		says    string
	}{
		"key":     {objectstest.Account{Key: "x", Secret: secret}, objects.ErrDenied, objects.AccessKeyID},
		"secret":  {objectstest.Account{Key: key, Secret: "x"}, objects.ErrDenied, objects.SecretKey},
		"region":  {objectstest.Account{Key: key, Secret: secret, Region: "eu-west-1"}, objects.ErrRegion, "eu-west-1"},
		"expired": {objectstest.Account{Key: key, Secret: secret, Expired: true}, objects.ErrExpired, "ExpiredToken"},
		"denied":  {objectstest.Account{Key: key, Secret: secret, Deny: []string{"s3:GetObject"}}, objects.ErrDenied, "AccessDenied"},
	} {
		t.Run(name, func(t *testing.T) {
			s := objectstest.Start(t)
			c := s.Client(t)
			_, err := c.Put(t.Context(), "k", objects.Bytes([]byte("x")), objects.PutOptions{})
			require.NoError(t, err)
			s.Demand(tc.account)
			for _, key := range []string{"k", "none"} {
				_, err = c.Head(t.Context(), key)
				require.ErrorIs(t, err, tc.is)
				require.ErrorContains(t, err, "head s3://lake/"+key)
				require.ErrorContains(t, err, tc.says)
			}
		})
	}
}
