package sdk

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/signet-io/signet/plugins/protocol"
)

// Description is what `<plugin> describe` prints as JSON.
type Description struct {
	Name         string   `json:"name"`
	Version      string   `json:"version"`
	Protocol     int      `json:"protocol"`
	Summary      string   `json:"summary,omitempty"`
	CommitPoint  string   `json:"commit_point"`
	Capabilities []string `json:"capabilities"`
	Creates      []string `json:"creates"`
	CommitPoints []string `json:"commit_points,omitempty"`
	Hints        []string `json:"hints,omitempty"`
	Platform     string   `json:"platform"`
}

func printDescription(sink Sink, w io.Writer) error {
	d, err := describe(sink)
	if err != nil {
		return err
	}
	out := Description{
		Name: d.GetName(), Version: d.GetVersion(), Protocol: protocol.Version, Summary: d.GetSummary(),
		CommitPoint: short(d.GetCommitPoint(), "COMMIT_POINT_"), Capabilities: []string{}, Creates: d.GetCreates(),
		CommitPoints: d.GetCommitPoints(), Hints: d.GetHints(), Platform: runtime.GOOS + "_" + runtime.GOARCH,
	}
	for _, c := range d.GetCapabilities() {
		out.Capabilities = append(out.Capabilities, short(c, "CAPABILITY_"))
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(out)
}

func short(v fmt.Stringer, prefix string) string {
	return strings.ToLower(strings.TrimPrefix(v.String(), prefix))
}

// explain is what a person reads who starts a plugin by hand.
func explain(sink Sink, w io.Writer) {
	self := filepath.Base(os.Args[0])
	name := strings.TrimPrefix(self, protocol.FilePrefix)
	d, err := describe(sink)
	if err == nil {
		name = d.GetName()
	}
	fmt.Fprintf(w, "%s is the Signet sink %q (protocol %d). It is a plugin: the scheduler starts it, it does nothing by itself.\n",
		self, name, protocol.Version)
	if d.GetSummary() != "" {
		fmt.Fprintf(w, "\n  %s\n", d.GetSummary())
	}
	fmt.Fprintf(w, "\nTo see what it can do:   %s describe\nTo use it:               put it into the scheduler's plugin directory as %s%s and lock it there (plugins.lock).\n",
		self, protocol.FilePrefix, name)
	if err != nil {
		fmt.Fprintf(w, "\nIt would not start: %v\n", err)
	}
}
