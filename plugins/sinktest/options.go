package sinktest

import (
	"context"
	"regexp"
	"time"

	"github.com/signet-io/signet/plugins/host"
)

// Options say what a sink needs in order to be tested. The zero value works for a sink that needs nothing.
type Options struct {
	// Run selects checks by name; nil: all of them.
	Run *regexp.Regexp
	// Properties are given to every table that the suite creates.
	Properties map[string]string
	// Without names column types that the suite leaves out, as TypeNames has them, with the reason.
	Without map[string]string
	// NoPartitions is why partitioned tables are left out; empty: they are not.
	NoPartitions string
	// EmptyIsNull: the format cannot tell an empty string from NULL in a partition value, as Delta's protocol rules it. Empty strings are left out there.
	EmptyIsNull bool
	// Secrets and Dial are what the sink may ask its host for: values by name, and addresses (host:port) by name.
	Secrets, Dial map[string]string
	// AllowEnv, AllowRead and Isolation are those of host.Config, for processes.
	AllowEnv, AllowRead []string
	Isolation           host.Isolation
	// Catalog opens the catalog of one table, for sinks with COMMIT_POINT_CATALOG. Nil: they are refused.
	Catalog func(ctx context.Context, namespace, table string) (Catalog, error)
	// Limits bound what the suite waits for; zero members have the defaults of DefaultLimits.
	Limits Limits
}

// Limits bound a sink's time and memory.
type Limits struct {
	Call   time.Duration // one call of an ordinary job
	Large  time.Duration // one call of a job of 100,000 files
	End    time.Duration // the process, once it was asked to end or its host is gone
	Memory int64         // bytes that the process may hold at most during a job of 100,000 files
}

// DefaultLimits are generous: they end what hangs, not what is slow.
func DefaultLimits() Limits {
	return Limits{Call: 30 * time.Second, Large: 2 * time.Minute, End: 10 * time.Second, Memory: 1 << 30}
}

func (o *Options) complete() {
	d := DefaultLimits()
	if o.Limits.Call <= 0 {
		o.Limits.Call = d.Call
	}
	if o.Limits.Large <= 0 {
		o.Limits.Large = d.Large
	}
	if o.Limits.End <= 0 {
		o.Limits.End = d.End
	}
	if o.Limits.Memory <= 0 {
		o.Limits.Memory = d.Memory
	}
}
