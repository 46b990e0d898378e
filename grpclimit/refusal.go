package grpclimit

import (
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/front"
)

// refusal returns the error of a call that does not go ahead, and otherwise nil.
func refusal(c RPC, a *front.Ask[RPC, error]) error {
	switch a.Outcome {
	case front.Limited:
		set, retry := a.Sets[a.Binding()], a.Decision.RetryAfter
		if a.HeldUp() {
			retry = time.Second // slots come back when handlers return, at an unknown time
		}
		return exhausted(set.Rule, front.Why(set.Rule.Name(), &a.Decision, retry == weir.Never), retry)
	case front.KeyMissing:
		return missingKey(a)
	case front.NotDecided:
		return notDecided()
	case front.ClientLeft:
		return status.FromContextError(c.Context.Err()).Err()
	}
	return nil
}

// exhausted returns the error of a call that a rule refuses, with the text that says why.
func exhausted(rule *weir.Rule, text string, retry time.Duration) error {
	details := []protoadapt.MessageV1{&errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{
		{Subject: rule.Name(), Description: rule.String()},
	}}}
	if retry != weir.Never {
		text += "; retry in " + rounded(retry).String()
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(retry)})
	}
	refused, err := status.New(codes.ResourceExhausted, text).WithDetails(details...)
	if err != nil { // the details are messages of this package, so they always marshal
		return status.Error(codes.ResourceExhausted, text)
	}
	return refused.Err()
}

// rounded returns a wait for people, rounded up to a second. The details have the exact one.
func rounded(d time.Duration) time.Duration {
	whole := d.Truncate(time.Second)
	if d < time.Second || whole == d || d > weir.Never-time.Second {
		return d
	}
	return whole + time.Second
}

func missingKey(a *front.Ask[RPC, error]) error {
	return status.Errorf(codes.InvalidArgument, "the limit %q needs a key that the call does not have", a.Missing.Rule.Name())
}

func notDecided() error {
	const text = "the limits cannot be checked at the moment"
	refused, err := status.New(codes.Unavailable, text).WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Second)})
	if err != nil { // as above
		return status.Error(codes.Unavailable, text)
	}
	return refused.Err()
}

// retryDelay returns the RetryInfo of an error, if it has one.
func retryDelay(err error) (delay time.Duration, ok bool) {
	for _, detail := range status.Convert(err).Details() {
		if info, is := detail.(*errdetails.RetryInfo); is && info.RetryDelay.IsValid() {
			return max(0, info.RetryDelay.AsDuration()), true
		}
	}
	return 0, false
}
