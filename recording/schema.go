package recording

import _ "embed"

//go:embed schema.json
var schema []byte

// Schema is the JSON Schema of one line of a .ronda.jsonl file. The caller must not change it.
func Schema() []byte { return schema }
