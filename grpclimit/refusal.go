package grpclimit

import (
	"fmt"
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
func refusal(c Call, a *front.Ask[Call, error]) error {
	switch a.Outcome {
	case front.Limited:
		set, retry := a.Sets[a.Binding()], a.Decision.RetryAfter
		if a.HeldUp() {
			retry = time.Second // slots come back when handlers return, at an unknown time
		}
		return exhausted(set.Rule, retry)
	case front.KeyMissing:
		return missingKey(a)
	case front.NotDecided:
		return notDecided()
	case front.ClientLeft:
		return status.FromContextError(c.Context.Err()).Err()
	}
	return nil
}

// exhausted returns the error of a call that a rule refuses.
func exhausted(rule *weir.Rule, retry time.Duration) error {
	text := fmt.Sprintf("the limit %q is used up", rule.Name())
	details := []protoadapt.MessageV1{&errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{
		{Subject: rule.Name(), Description: rule.String()},
	}}}
	if retry == weir.Never {
		text += "; the call can never be admitted"
	} else {
		text += "; retry in " + retry.String()
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(retry)})
	}
	refused, err := status.New(codes.ResourceExhausted, text).WithDetails(details...)
	if err != nil { // the details are messages of this package, so they always marshal
		return status.Error(codes.ResourceExhausted, text)
	}
	return refused.Err()
}

func missingKey(a *front.Ask[Call, error]) error {
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
