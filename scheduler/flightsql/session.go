package flightsql

import (
	"context"
	"encoding/base64"
	"net/http"

	"github.com/apache/arrow-go/v18/arrow/flight"
	pb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/session"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

// A session is the default catalog and schema, in a cookie that the client keeps: there is nothing here to exhaust, and it outlives restarts.

const (
	cookieName    = session.StatelessSessionCookieName
	maxCookie     = 4096
	optionCatalog = "catalog"
	optionSchema  = "schema"
)

// defaults are the catalog and schema of names that give neither: a header wins over the session.
func defaults(ctx context.Context) (catalog, schema string) {
	options, _ := sessionOptions(ctx) // a cookie that is none of ours is none
	catalog, schema = options[optionCatalog].GetStringValue(), options[optionSchema].GetStringValue()
	if h := header(ctx, CatalogHeader); h != "" {
		catalog = h
	}
	if h := header(ctx, SchemaHeader); h != "" {
		schema = h
	}
	return catalog, schema
}

func sessionOptions(ctx context.Context) (map[string]*flight.SessionOptionValue, bool) {
	md, _ := metadata.FromIncomingContext(ctx)
	header := http.Header{}
	for _, v := range md.Get("cookie") {
		header.Add("Cookie", v)
	}
	c, err := (&http.Request{Header: header}).Cookie(cookieName)
	if err != nil || len(c.Value) > maxCookie {
		return nil, false
	}
	b, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil {
		return nil, false
	}
	var out flight.GetSessionOptionsResult
	if err := proto.Unmarshal(b, &out); err != nil {
		return nil, false
	}
	return out.GetSessionOptions(), true
}

func sendCookie(ctx context.Context, value string, maxAge int) error {
	c := http.Cookie{Name: cookieName, Value: value, MaxAge: maxAge, Path: "/", HttpOnly: true}
	return grpc.SetHeader(ctx, metadata.Pairs("set-cookie", c.String()))
}

// SetSessionOptions sets the catalog and the schema.
func (s *server) SetSessionOptions(ctx context.Context, req *flight.SetSessionOptionsRequest) (*flight.SetSessionOptionsResult, error) {
	old, _ := sessionOptions(ctx) // none yet
	options := map[string]*flight.SessionOptionValue{}
	for _, name := range []string{optionCatalog, optionSchema} {
		if v := old[name]; v.GetStringValue() != "" {
			options[name] = v
		}
	}
	out := &flight.SetSessionOptionsResult{}
	refuse := func(name string, why pb.SetSessionOptionsResult_ErrorValue) {
		if out.Errors == nil {
			out.Errors = map[string]*flight.SetSessionOptionsResultError{}
		}
		out.Errors[name] = &flight.SetSessionOptionsResultError{Value: why}
	}
	for name, v := range req.GetSessionOptions() {
		_, isText := v.GetOptionValue().(*pb.SessionOptionValue_StringValue)
		switch {
		case name != optionCatalog && name != optionSchema:
			refuse(name, flight.SetSessionOptionsResultErrorInvalidName)
		case v.GetOptionValue() == nil || isText && v.GetStringValue() == "":
			delete(options, name)
		case !isText || len(v.GetStringValue()) > maxCookie/4:
			refuse(name, flight.SetSessionOptionsResultErrorInvalidValue)
		default:
			options[name] = v
		}
	}
	b, err := proto.Marshal(&flight.GetSessionOptionsResult{SessionOptions: options})
	if err != nil {
		return nil, err
	}
	return out, sendCookie(ctx, base64.RawURLEncoding.EncodeToString(b), 0)
}

// GetSessionOptions tells them.
func (s *server) GetSessionOptions(ctx context.Context, _ *flight.GetSessionOptionsRequest) (*flight.GetSessionOptionsResult, error) {
	out := map[string]*flight.SessionOptionValue{}
	catalog, schema := defaults(ctx)
	for name, v := range map[string]string{optionCatalog: catalog, optionSchema: schema} {
		if v != "" {
			out[name] = &flight.SessionOptionValue{OptionValue: &pb.SessionOptionValue_StringValue{StringValue: v}}
		}
	}
	return &flight.GetSessionOptionsResult{SessionOptions: out}, nil
}

// CloseSession has the client forget its cookie.
func (s *server) CloseSession(ctx context.Context, _ *flight.CloseSessionRequest) (*flight.CloseSessionResult, error) {
	return &flight.CloseSessionResult{Status: flight.CloseSessionResultClosed}, sendCookie(ctx, "", -1)
}
