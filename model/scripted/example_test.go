package scripted_test

import (
	"context"
	"fmt"

	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/scripted"
)

func Example() {
	script, err := scripted.Parse([]byte(`
- calls: [{search: {q: bench}}]
- fail: {status: 529, retry_after: 2s}
- text: You can lift 93.3 kg.
`))
	if err != nil {
		panic(err)
	}
	m := scripted.New(script)
	for _, at := range []struct{ call, attempt int64 }{{1, 1}, {2, 1}, {2, 2}} {
		res, err := m.Generate(context.Background(), &model.Request{Run: "r", Call: at.call, Attempt: at.attempt}, nil)
		if err != nil {
			fmt.Println(err)
			continue
		}
		b := res.Blocks[0]
		fmt.Println(res.Finish, b.Name+b.Args+b.Text)
	}
	// Output:
	// calls search{"q":"bench"}
	// model: transient 529: error 529
	// stop You can lift 93.3 kg.
}
