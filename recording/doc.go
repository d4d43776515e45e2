// Package recording is the journal of a run made portable: its file format, and what can be done with a recording without a model, a
// tool or a token: play it, explain it, compare it, run it through today's loop again, ask what other limits would have done.
//
// # The file
//
// A recording is a list of lines, each a JSON object {s, t, k, …, h}: s counts the lines from 0 without a gap, t is microseconds since
// the start of the run and never goes back, k is the kind, h is the last member and a tag of the hash chain. Kinds that begin with an
// upper-case letter are events of the journal (package loop); the others are the file's own:
//
//	ronda     the header, always the first line: all that a list needs
//	run       a child run begins; lines of run n carry r: n
//	clock     ties t to wall time: at the start and where a driver took the run over
//	artifact  bytes that later lines name by {"$ref": "sha256:…"}
//	delta     pieces of one block of a streamed response, each with its time
//	tape      the times of a response whose pieces cannot be shown
//	check     the whole digest of the chain, every 1,000 lines
//	end       the footer; without it the file was cut off, which is no fault of its chain
//
// A file is either those lines (.ronda.jsonl), or a zip of them in pieces with an index and the artifacts (.ronda), so that one can
// jump into it without reading it whole. Readers keep kinds that they do not know and pass them on. docs/recording.md tells the rest.
package recording
