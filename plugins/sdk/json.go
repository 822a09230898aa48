package sdk

import (
	"context"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// GetJSON reads an object and decodes it into v, a protobuf message or anything that encoding/json takes.
func (h *Host) GetJSON(ctx context.Context, uri string, v any) error {
	body, err := h.Get(ctx, uri)
	if err != nil {
		return err
	}
	if m, ok := v.(proto.Message); ok {
		err = protojson.Unmarshal(body, m)
	} else {
		err = json.Unmarshal(body, v)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", uri, err)
	}
	return nil
}

// PutJSON is PutIfAbsent of v as JSON.
func (h *Host) PutJSON(ctx context.Context, uri string, v any, opts ...PutOption) error {
	marshal := json.Marshal
	if m, ok := v.(proto.Message); ok {
		marshal = func(any) ([]byte, error) { return protojson.Marshal(m) }
	}
	body, err := marshal(v)
	if err != nil {
		return fmt.Errorf("%s: %w", uri, err)
	}
	_, err = h.PutIfAbsent(ctx, uri, body, opts...)
	return err
}
