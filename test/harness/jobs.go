package harness

import (
	"strings"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/stretchr/testify/require"
)

// JobsAbout lists the jobs whose statement contains a text, newest first.
func (c *Cluster) JobsAbout(text string) []*schedulerv1.Job {
	c.t.Helper()
	all, err := c.Client().Jobs(Context(c.t), 100_000)
	require.NoError(c.t, err)
	var out []*schedulerv1.Job
	for _, j := range all {
		if strings.Contains(j.GetStatement(), text) {
			out = append(out, j)
		}
	}
	return out
}
