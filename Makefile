# The two commands of the README: make demo, make test. Everything else is for who works on ronda.
GO      ?= go
LDFLAGS := -s -w
export GOTOOLCHAIN ?= local

.PHONY: demo test race lint fuzz build live bench generate clean e2e console

build:
	$(GO) build -ldflags '$(LDFLAGS)' -o ronda ./cmd/ronda

# Runs the support assistant with scripted responses, its real tools and real databases; ends waiting for an approval.
demo: build
	@./ronda run support "Answer case 4812" --scripted; code=$$?; if [ $$code -ne 3 ]; then echo "demo: want exit code 3 (waiting), got $$code"; exit 1; fi

# Everything that needs no more than Go.
test:
	$(GO) test -timeout 20m ./...

# The packages where goroutines meet. Those whose tests mostly wait for processes, for SQLite in pure Go or for thousands of scenarios are
# left out: the detector slows them down twentyfold.
race:
	$(GO) test -race -short -timeout 20m . ./loop ./drive ./policy ./tool ./journal/memory ./model/wire ./model/scripted ./rondatest/drill ./rondatest/sim ./server

lint:
	@test -z "$$(gofmt -l . | tee /dev/stderr)"
	$(GO) vet ./...
	cd tools && $(GO) build -o ../.tools/staticcheck honnef.co/go/tools/cmd/staticcheck
	.tools/staticcheck ./...

# The console in a real Chromium: a newcomer's tour, accessibility, figures. Needs Node 20 and Chromium; says so where they are missing (77).
e2e:
	@./console/web/e2e.sh

# Rebuilds the console's embedded files from console/web.
console:
	./console/web/check.sh -w

# A small set of checks against the real providers whose keys are in the environment; says which were skipped.
live:
	$(GO) test -tags live -count=1 -v ./rondatest/live

# The side-by-side benchmark needs the mock server and the floors; see docs/benchmarks.md.
bench:
	./scripts/bench.sh

FUZZTIME ?= 10s
fuzz:
	./scripts/fuzz.sh $(FUZZTIME)

clean:
	rm -rf ronda dist .tools
