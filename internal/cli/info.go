package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
)

func (a *app) infoCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use: "info", Short: "Show the scheduler, its executors and its catalogs", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withSession(cmd.Context(), func(ctx context.Context, s *session) error {
				i, err := s.Info(ctx)
				if err != nil {
					return err
				}
				text := infoText(i)
				if s.embedded && len(i.GetExecutors()) == 0 {
					text += "executor   none now; signet sql starts those of an embedded cluster\n"
				}
				if output == "json" {
					b, err := protojson.MarshalOptions{UseProtoNames: true, EmitDefaultValues: true}.Marshal(i)
					if err != nil {
						return err
					}
					text = string(b) + "\n"
				}
				_, err = fmt.Fprint(a.streams.Out, text)
				return err
			})
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text, json")
	a.connectionFlags(cmd)
	return cmd
}

func infoText(i *schedulerv1.GetInfoResponse) string {
	var b strings.Builder
	fmt.Fprintf(&b, "scheduler  %s, process %d, cluster %s, epoch %d\n", i.GetVersion(), i.GetPid(), i.GetCluster(), i.GetEpoch())
	fmt.Fprintf(&b, "catalogs   %s\n", strings.Join(i.GetCatalogs(), ", "))
	fmt.Fprintf(&b, "plugins    %s\n", i.GetIsolation())
	for _, e := range i.GetExecutors() {
		leaving := ""
		if e.GetLeaving() {
			leaving = ", leaving"
		}
		seen := time.Since(time.UnixMilli(e.GetLastSeenMillis())).Round(100 * time.Millisecond)
		fmt.Fprintf(&b, "executor   %s on %s, process %d, %d of %d slots busy, seen %s ago%s\n", e.GetId(), e.GetHost(), e.GetPid(), e.GetRunning(), e.GetSlots(), seen, leaving)
	}
	return b.String()
}
