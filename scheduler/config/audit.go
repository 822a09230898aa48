package config

// Audit says where the audit log goes.
type Audit struct {
	// File gets one JSON document per line; none by default.
	File string `koanf:"file" kind:"path"`
	// IncludeSQL writes statements, which may hold values, with the events.
	IncludeSQL bool `koanf:"include_sql"`
}
