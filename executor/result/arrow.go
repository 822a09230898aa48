package result

/*
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct ArrowSchema {
	const char* format;
	const char* name;
	const char* metadata;
	int64_t flags;
	int64_t n_children;
	struct ArrowSchema** children;
	struct ArrowSchema* dictionary;
	void (*release)(struct ArrowSchema*);
	void* private_data;
};

struct ArrowArray {
	int64_t length;
	int64_t null_count;
	int64_t offset;
	int64_t n_buffers;
	int64_t n_children;
	const void** buffers;
	struct ArrowArray** children;
	struct ArrowArray* dictionary;
	void (*release)(struct ArrowArray*);
	void* private_data;
};

// Two functions of DuckDB's C API, which the bindings link but export to Go only under the build tag duckdb_arrow. Handles are pointers.
extern void* duckdb_to_arrow_schema(void* options, void* types, const char** names, uint64_t n, struct ArrowSchema* out);
extern void* duckdb_data_chunk_to_arrow(void* options, void* chunk, struct ArrowArray* out);
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/cdata"
	bindings "github.com/duckdb/duckdb-go-bindings"
)

const pointerSize = unsafe.Sizeof(uintptr(0))

// arrowSchema is the Arrow schema that DuckDB gives a result.
func arrowSchema(options bindings.ArrowOptions, types []bindings.LogicalType, names []string) (*arrow.Schema, error) {
	n := len(types)
	cTypes := unsafe.Slice((*unsafe.Pointer)(C.calloc(C.size_t(n+1), C.size_t(pointerSize))), n+1)
	cNames := unsafe.Slice((**C.char)(C.calloc(C.size_t(n+1), C.size_t(pointerSize))), n+1)
	out := (*C.struct_ArrowSchema)(C.calloc(1, C.sizeof_struct_ArrowSchema))
	defer func() {
		for i := range n {
			C.free(unsafe.Pointer(cNames[i]))
		}
		C.free(unsafe.Pointer(&cTypes[0]))
		C.free(unsafe.Pointer(&cNames[0]))
		cdata.ReleaseCArrowSchema((*cdata.CArrowSchema)(unsafe.Pointer(out)))
		C.free(unsafe.Pointer(out))
	}()
	for i := range n {
		cTypes[i], cNames[i] = types[i].Ptr, C.CString(names[i])
	}
	if err := dataError(C.duckdb_to_arrow_schema(options.Ptr, unsafe.Pointer(&cTypes[0]), &cNames[0], C.uint64_t(n), out)); err != nil {
		return nil, fmt.Errorf("convert the schema to Arrow: %w", err)
	}
	return cdata.ImportCArrowSchema((*cdata.CArrowSchema)(unsafe.Pointer(out)))
}

// arrowBatch converts a chunk. The batch owns memory outside the Go heap until it is released.
func arrowBatch(options bindings.ArrowOptions, schema *arrow.Schema, chunk bindings.DataChunk) (arrow.RecordBatch, error) {
	out := (*C.struct_ArrowArray)(C.calloc(1, C.sizeof_struct_ArrowArray))
	defer func() {
		cdata.ReleaseCArrowArray((*cdata.CArrowArray)(unsafe.Pointer(out)))
		C.free(unsafe.Pointer(out))
	}()
	if err := dataError(C.duckdb_data_chunk_to_arrow(options.Ptr, chunk.Ptr, out)); err != nil {
		return nil, fmt.Errorf("convert rows to Arrow: %w", err)
	}
	return cdata.ImportCRecordBatchWithSchema((*cdata.CArrowArray)(unsafe.Pointer(out)), schema)
}

func dataError(handle unsafe.Pointer) error {
	if handle == nil {
		return nil
	}
	ed := bindings.ErrorData{Ptr: handle}
	defer bindings.DestroyErrorData(&ed)
	if !bindings.ErrorDataHasError(ed) {
		return nil
	}
	return errors.New(bindings.ErrorDataMessage(ed))
}
