package support

import (
	"context"
	"slices"
	"time"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/tool"
)

// Label of every tool that writes to a customer: a refusal of one holds for all of them.
const Label = "message_customer"

// Tools are the assistant's tools on a database, in the order in which they are declared.
func Tools(db *DB) []tool.Tool {
	read := []tool.Option{tool.Read(), tool.Timeout(10 * time.Second), tool.Retries(2)}
	return []tool.Tool{
		tool.Func("read_case", "Reads a support case: customer, messages, order with what our systems recorded, linked cases, replies"+
			" that were sent.", db.ReadCase, read...),
		tool.Func("search_cases", "Finds cases by words, order number or customer. At least one of query and customer is needed; the"+
			" best matches come first.", db.SearchCases, read...),
		tool.Func("find_policy", "Finds the policies on a topic that were in force on a day, with version, validity and text. The day is"+
			" the one on which the case was opened.", db.FindPolicy, append(slices.Clip(read), tool.Enum("lang", "en", "es"))...),
		tool.Func("draft_reply", "Writes a reply down as a draft, without sending it. It must go to the case's customer, name the case number,"+
			" and cite the version of a policy that was in force on the day the case was opened.", db.draftTool,
			tool.Idempotent(), tool.Timeout(10*time.Second), tool.Retries(2), tool.RequiresSame("read_case", "case_id"),
			tool.Requires("find_policy"), tool.Grounded("policy_id", "to")),
		tool.Func("send_reply", "Sends a draft to the customer, exactly as it is. A person has to approve it.", db.sendTool,
			tool.Once(), tool.Ask(), tool.Label(Label), tool.Timeout(20*time.Second), tool.Retries(2),
			tool.RequiresSame("draft_reply", "to", "body"), tool.Grounded("draft_id", "to"), tool.CheckWith(db.checkTool)),
	}
}

func origin(ctx context.Context) Origin {
	call, _ := tool.CallOf(ctx)
	return Origin{Run: call.Run, Key: call.Key}
}

// draftTool is draft_reply. It establishes the facts request, policy and draft.
func (db *DB) draftTool(ctx context.Context, in DraftInput) (*Draft, error) {
	d, err := db.DraftReply(ctx, origin(ctx), in)
	if err != nil {
		return nil, err
	}
	for _, f := range []struct {
		name  string
		value any
	}{{"request", d.Request}, {"policy", d.Policy}, {"draft", d.Draft}} {
		if err := tool.Fact(ctx, f.name, f.value); err != nil {
			return nil, err
		}
	}
	return &d.Draft, nil
}

// sendTool is send_reply. It establishes the fact receipt.
func (db *DB) sendTool(ctx context.Context, in SendInput) (*Receipt, error) {
	r, err := db.SendReply(ctx, origin(ctx), in)
	if err != nil {
		return nil, err
	}
	// It was sent: a failure from here on must not read as if it had not been.
	return r, tool.Unknown(tool.Fact(ctx, "receipt", r))
}

// checkTool tells whether send_reply sent something under the call's key.
func (db *DB) checkTool(ctx context.Context, _ SendInput) (happened string, r *Receipt, err error) {
	r, err = db.FindReceipt(ctx, origin(ctx).Key)
	switch {
	case err != nil:
		return loop.HappenedUnknown, nil, err
	case r == nil:
		return loop.HappenedNo, nil, nil
	}
	return loop.HappenedYes, r, tool.Fact(ctx, "receipt", r)
}
