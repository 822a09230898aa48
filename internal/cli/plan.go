package cli

import (
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/client"
)

// readInput is what is to run: statements, or a plan.
func (a *app) readInput(args []string, f sqlFlags) ([]statement, error) {
	if f.plan == "" {
		return a.readStatements(args, f.file)
	}
	if len(args) > 0 || f.file != "" {
		return nil, usageError("--plan takes the place of statements: leave them out")
	}
	text, name, err := a.readFile(f.plan)
	if err != nil {
		return nil, err
	}
	opt, err := readPlan([]byte(text))
	if err != nil {
		return nil, usageError("%s: %v", name, err)
	}
	return []statement{{plan: opt, script: name, line: 1, alone: true}}, nil
}

// readPlan reads plan.v1.LogicalPlan ({"operators": …}) or plan.v1.PhysicalPlan ({"stages": …}) as protobuf's JSON.
func readPlan(text []byte) (client.StatementOption, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, fmt.Errorf("the plan is no JSON object: %w", err)
	}
	_, logical := members["operators"]
	_, physical := members["stages"]
	switch {
	case logical == physical:
		return nil, fmt.Errorf(`want a logical plan, {"operators": […]}, or a physical one, {"stages": […]}`)
	case logical:
		p := &planv1.LogicalPlan{}
		return client.WithLogicalPlan(p), unmarshal(text, p)
	default:
		p := &planv1.PhysicalPlan{}
		return client.WithPhysicalPlan(p), unmarshal(text, p)
	}
}

func unmarshal(text []byte, m proto.Message) error {
	if err := protojson.Unmarshal(text, m); err != nil {
		return fmt.Errorf("the plan: %w", err)
	}
	return nil
}
