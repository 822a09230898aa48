package transform

import (
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/big"
	"strings"

	driver "github.com/duckdb/duckdb-go/v2"
	"github.com/twmb/murmur3"
)

// Names of the registered functions. Each maps a value to its murmur3_x86_32 hash without the sign bit, NULL to NULL.
const (
	hashLong    = "__signet_hash_long"    // BIGINT: integers, dates, times, timestamps
	hashDecimal = "__signet_hash_decimal" // VARCHAR: the unscaled integer as text
	hashText    = "__signet_hash_text"    // VARCHAR: UTF-8
	hashBytes   = "__signet_hash_bytes"   // BLOB
	hashUUID    = "__signet_hash_uuid"    // VARCHAR: the text form
)

func sum(b []byte) int32 { return int32(murmur3.Sum32(b) & 0x7fffffff) }

func sumLong(v int64) int32 {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(v))
	return sum(b[:])
}

func sumDecimal(text string) (int32, error) {
	v, ok := new(big.Int).SetString(text, 10)
	if !ok {
		return 0, fmt.Errorf("%q is no integer", text)
	}
	return sum(twosComplement(v)), nil
}

func sumUUID(text string) (int32, error) {
	b, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	if err != nil || len(b) != 16 {
		return 0, fmt.Errorf("%q is no UUID", text)
	}
	return sum(b), nil
}

// twosComplement is v as the shortest big-endian two's complement.
func twosComplement(v *big.Int) []byte {
	if v.Sign() == 0 {
		return []byte{0}
	}
	if v.Sign() > 0 {
		b := v.Bytes()
		if b[0]&0x80 != 0 {
			b = append([]byte{0}, b...)
		}
		return b
	}
	n := new(big.Int).Not(v).BitLen()/8 + 1
	b := new(big.Int).Add(v, new(big.Int).Lsh(big.NewInt(1), uint(8*n))).Bytes()
	for len(b) < n {
		b = append([]byte{0}, b...)
	}
	return b
}

// Register adds the hash functions to a connection. It must run before user SQL; it works on a locked instance too.
func Register(_ context.Context, conn *sql.Conn) error {
	for _, f := range []struct {
		name  string
		input driver.Type
		exec  driver.ChunkContextExecutorFn
	}{
		{hashLong, driver.TYPE_BIGINT, hashLongs},
		{hashDecimal, driver.TYPE_VARCHAR, hashStrings(sumDecimal)},
		{hashText, driver.TYPE_VARCHAR, hashStrings(func(s string) (int32, error) { return int32(murmur3.StringSum32(s) & 0x7fffffff), nil })},
		{hashUUID, driver.TYPE_VARCHAR, hashStrings(sumUUID)},
		{hashBytes, driver.TYPE_BLOB, hashBlobs},
	} {
		in, err := driver.NewTypeInfo(f.input)
		if err != nil {
			return fmt.Errorf("register %s: %w", f.name, err)
		}
		out, err := driver.NewTypeInfo(driver.TYPE_INTEGER)
		if err != nil {
			return fmt.Errorf("register %s: %w", f.name, err)
		}
		if err := driver.RegisterScalarUDF(conn, f.name, &hashFunc{in: in, out: out, exec: f.exec}); err != nil {
			return fmt.Errorf("register %s: %w", f.name, err)
		}
	}
	return nil
}

type hashFunc struct {
	in, out driver.TypeInfo
	exec    driver.ChunkContextExecutorFn
}

// Config implements driver.ScalarFunc.
func (f *hashFunc) Config() driver.ScalarFuncConfig {
	return driver.ScalarFuncConfig{InputTypeInfos: []driver.TypeInfo{f.in}, ResultTypeInfo: f.out}
}

// Executor implements driver.ScalarFunc.
func (f *hashFunc) Executor() driver.ScalarFuncExecutor {
	return driver.ScalarFuncExecutor{ChunkContextExecutor: f.exec}
}

func hashLongs(_ context.Context, chunk *driver.ChunkIteratorState) error {
	return eachRow(chunk, func(v any) (int32, error) {
		n, ok := v.(int64)
		if !ok {
			return 0, fmt.Errorf("want BIGINT, have %T", v)
		}
		return sumLong(n), nil
	})
}

func hashBlobs(_ context.Context, chunk *driver.ChunkIteratorState) error {
	return eachRow(chunk, func(v any) (int32, error) {
		b, ok := v.([]byte)
		if !ok {
			return 0, fmt.Errorf("want BLOB, have %T", v)
		}
		return sum(b), nil
	})
}

func eachRow(chunk *driver.ChunkIteratorState, hash func(any) (int32, error)) error {
	for row, err := range chunk.Rows() {
		if err != nil {
			return err
		}
		h, err := hash(*row.GetValuePtr(0))
		if err != nil {
			return err
		}
		if err := row.SetResult(h); err != nil {
			return err
		}
	}
	return nil
}

func hashStrings(hash func(string) (int32, error)) driver.ChunkContextExecutorFn {
	return func(_ context.Context, chunk *driver.ChunkIteratorState) error {
		return eachRow(chunk, func(v any) (int32, error) {
			s, ok := v.(string)
			if !ok {
				return 0, fmt.Errorf("want VARCHAR, have %T", v)
			}
			return hash(s)
		})
	}
}
