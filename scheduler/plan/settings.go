package plan

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/signet-io/signet/scheduler/lineage"
	"github.com/signet-io/signet/scheduler/summary"
)

// Names of the settings that a statement may carry.
const (
	SettingPlanner        = "signet.planner"
	SettingMinTaskBytes   = "signet.min_task_bytes"
	SettingMaxTasks       = "signet.max_tasks"
	SettingPartitions     = "signet.partitions"
	SettingBroadcastBytes = "signet.broadcast_bytes"
	SettingRoot           = "signet.scheduler.root"
	SettingTaskPolicy     = "signet.task_policy"
	SettingPipelined      = "signet.pipelined"
	SettingOverwriteMode  = "signet.write.overwrite-mode"
	SettingWapBranch      = "signet.wap_branch"
	SettingWapID          = "signet.wap_id"
	SettingSplice         = "signet.splice.enabled"
	// SettingSummary is the beginning of settings that become properties of the snapshot that the statement commits: what is behind it is the property's
	// name. Spark's write option for it has the same name.
	SettingSummary = "signet.snapshot-property."
	// SettingLineage is the beginning of settings that say something of the statement's lineage events, and nothing of what it does.
	SettingLineage       = "signet.lineage."
	SettingLineageJob    = SettingLineage + "job"
	SettingLineageParent = SettingLineage + "parent"
)

// Settings is what a statement's settings ask for.
type Settings struct {
	Mode           Mode   // empty: not set
	MinTaskBytes   int64  // 0: not set
	MaxTasks       int    // 0: not set
	Partitions     int32  // 0: not set
	BroadcastBytes int64  // 0: not set; negative: never
	Root           string // names of operators
	TaskPolicy     string // push, pull; empty: not set
	Pipelined      bool   // rows reach the client while the job runs
	OverwriteMode  string // static, dynamic; empty: not set
	WapBranch      string // of writes that name none; empty: not set
	WapID          string // of snapshots that are staged; empty: writes go to their branch
	NoSplice       bool   // nothing of Parquet files is copied as it is

	Summary map[string]string // properties of the snapshot that the statement commits

	LineageJob    string          // name of the job in lineage events; empty: made of the statement
	LineageParent *lineage.Parent // nil: none
}

// What INSERT OVERWRITE t removes, as the setting says it.
const (
	OverwriteStatic  = "static"  // all rows
	OverwriteDynamic = "dynamic" // those of the partitions that rows are written to
)

var settings = map[string]func(*Settings, string) error{
	SettingPlanner: func(s *Settings, v string) error {
		s.Mode = Mode(v)
		return oneOf(v, string(Static), string(Adaptive))
	},
	SettingMinTaskBytes: func(s *Settings, v string) error { return number(v, 1, 1<<50, &s.MinTaskBytes) },
	SettingMaxTasks:     func(s *Settings, v string) error { return number(v, 1, DefaultMaxTasks, &s.MaxTasks) },
	SettingPartitions:   func(s *Settings, v string) error { return number(v, 1, MaxPartitions, &s.Partitions) },
	SettingBroadcastBytes: func(s *Settings, v string) error {
		err := number(v, 0, 1<<40, &s.BroadcastBytes)
		if s.BroadcastBytes == 0 {
			s.BroadcastBytes = -1
		}
		return err
	},
	SettingRoot: func(s *Settings, v string) error {
		s.Root = v
		_, err := RootByName(v)
		return err
	},
	SettingTaskPolicy: func(s *Settings, v string) error {
		s.TaskPolicy = v
		return oneOf(v, "push", "pull")
	},
	SettingOverwriteMode: func(s *Settings, v string) error {
		s.OverwriteMode = strings.ToLower(v)
		return oneOf(s.OverwriteMode, OverwriteStatic, OverwriteDynamic)
	},
	SettingWapBranch: func(s *Settings, v string) error {
		s.WapBranch = v
		if v == "" {
			return fmt.Errorf("want the name of a branch")
		}
		return nil
	},
	SettingWapID: func(s *Settings, v string) error {
		s.WapID = v
		if !wapIDs.MatchString(v) {
			return fmt.Errorf("want 1 to 128 letters, digits and . _ : @ -")
		}
		return nil
	},
	SettingPipelined: func(s *Settings, v string) (err error) {
		if s.Pipelined, err = strconv.ParseBool(v); err != nil {
			return fmt.Errorf("want true or false")
		}
		return nil
	},
	SettingSplice: func(s *Settings, v string) error {
		on, err := strconv.ParseBool(v)
		if err != nil {
			return fmt.Errorf("want true or false")
		}
		s.NoSplice = !on
		return nil
	},
	SettingLineageJob: func(s *Settings, v string) error {
		if s.LineageJob = v; v == "" || len(v) > 256 {
			return fmt.Errorf("want a name of at most 256 bytes")
		}
		return nil
	},
	SettingLineageParent: func(s *Settings, v string) (err error) {
		s.LineageParent, err = lineage.ParseParent(v)
		return err
	},
}

// ParseSettings reads a statement's settings. Unknown ones and bad values are refused: a setting that does nothing would be worse.
func ParseSettings(m map[string]string) (Settings, error) {
	out := Settings{}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		set, ok := settings[name]
		if key, is := strings.CutPrefix(name, SettingSummary); is {
			set, ok = func(s *Settings, v string) error { return s.setSummary(key, v) }, true
		}
		if !ok {
			known := append(slices.Sorted(maps.Keys(settings)), SettingSummary+"NAME")
			return out, &Error{Message: fmt.Sprintf("there is no setting %q", name), Hint: "settings are " + strings.Join(known, ", ")}
		}
		if err := set(&out, m[name]); err != nil {
			return out, &Error{Message: fmt.Sprintf("setting %s is %q: %v", name, m[name], err)}
		}
	}
	if out.WapBranch != "" && out.WapID != "" {
		return out, &Error{Message: "settings " + SettingWapBranch + " and " + SettingWapID + " exclude each other", Hint: "audit on a branch, or in a snapshot that no branch has"}
	}
	return out, nil
}

// wapIDs are written the same in JSON as in a statement.
var wapIDs = regexp.MustCompile(`^[A-Za-z0-9._:@-]{1,128}$`)

func (s *Settings) setSummary(key, value string) error {
	if err := summary.Check(key, value); err != nil {
		return err
	}
	if len(s.Summary) == summary.MaxCount {
		return fmt.Errorf("a snapshot has at most %d properties of the user", summary.MaxCount)
	}
	if s.Summary == nil {
		s.Summary = map[string]string{}
	}
	s.Summary[key] = value
	return nil
}

func oneOf(v string, allowed ...string) error {
	if !slices.Contains(allowed, v) {
		return fmt.Errorf("want %s", strings.Join(allowed, " or "))
	}
	return nil
}

func number[T int | int32 | int64](v string, least, most int64, to *T) error {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < least || n > most {
		return fmt.Errorf("want a whole number from %d to %d", least, most)
	}
	*to = T(n)
	return nil
}

// Apply puts the settings over a request's defaults.
func (s Settings) Apply(r *Request) error {
	if s.MinTaskBytes > 0 {
		r.Limits.MinBytes = s.MinTaskBytes
	}
	if s.MaxTasks > 0 {
		r.Limits.MaxTasks = s.MaxTasks
	}
	if s.BroadcastBytes != 0 {
		r.Limits.BroadcastBytes = s.BroadcastBytes
	}
	r.Tuning.Partitions, r.Tuning.NoSplice = s.Partitions, s.NoSplice
	if s.Root == "" {
		return nil
	}
	byName, err := RootByName(s.Root)
	if err != nil {
		return err
	}
	before := r.Root
	r.Root = func(n *Node) bool { return byName(n) || before != nil && before(n) }
	return nil
}
