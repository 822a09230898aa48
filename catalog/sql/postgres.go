package sql

import (
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// openPostgres prepares connections; the first statement makes one.
func openPostgres(uri, password string) (*database, error) {
	cfg, err := pgx.ParseConfig(uri)
	if err != nil {
		// pgx prints the URI with the password removed, but a URI that it cannot parse at all it cannot clean either.
		return nil, errors.New("uri: not a PostgreSQL address; want postgresql://user@host:port/database")
	}
	if password != "" {
		cfg.Password = password
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = 10 * time.Second
	}
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = "signet"
	}
	db := stdlib.OpenDB(*cfg)
	db.SetMaxOpenConns(8)
	db.SetMaxIdleConns(4)
	db.SetConnMaxIdleTime(5 * time.Minute)
	return &database{read: db, write: db}, nil
}
