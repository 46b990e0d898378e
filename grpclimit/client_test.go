package grpclimit_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	test "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weirflow/weir/grpclimit"
	"github.com/weirflow/weir/internal/layertest"
)

func newClient(t *testing.T, o grpclimit.ClientOptions) *grpclimit.Client {
	t.Helper()
	o.Engine = layertest.Around(o.Engine)
	c, err := grpclimit.NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// call makes a unary call through the interceptor to a server that is a function.
func call(ctx context.Context, c *grpclimit.Client, method string, server func() error) error {
	return c.Unary(ctx, method, nil, nil, nil, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
		return server()
	})
}

func succeed() error { return nil }

// refuse is the answer of a server whose limit is used up.
func refuse(retry time.Duration) error {
	s, err := status.New(codes.ResourceExhausted, "slow down").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(retry)})
	if err != nil {
		return err
	}
	return s.Err()
}

func TestAClientWaitsForItsOwnLimitInOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, grpclimit.ClientOptions{Rules: []grpclimit.Rule{{Limit: "token bucket 1/s burst 2"}}})
		began := time.Now()
		var order []int
		var seconds []int
		var mu sync.Mutex
		var calls sync.WaitGroup
		for i := range 5 {
			calls.Go(func() {
				if err := call(t.Context(), c, "m", func() error {
					mu.Lock()
					defer mu.Unlock()
					order, seconds = append(order, i), append(seconds, int(time.Since(began)/time.Second))
					return nil
				}); err != nil {
					t.Errorf("call %d: %v", i, err)
				}
			})
			synctest.Wait()
		}
		calls.Wait()
		for i, want := range []int{0, 0, 1, 2, 3} {
			if order[i] != i || seconds[i] != want {
				t.Errorf("the calls %v went in the seconds %v, want in order in 0, 0, 1, 2, 3", order, seconds)
				break
			}
		}
	})
}

func TestAClientsCallFailsAtOnceWhenItWouldWaitTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, grpclimit.ClientOptions{MaxWait: time.Minute, Rules: []grpclimit.Rule{{Limit: "own=1/h"}}})
		began := time.Now()
		wantCode(t, "first", call(t.Context(), c, "m", succeed), codes.OK)
		err := call(t.Context(), c, "m", succeed)
		wantCode(t, "second", err, codes.ResourceExhausted)
		if retry, subjects := details(t, err); retry < 59*time.Minute || len(subjects) != 1 || subjects[0] != "own" {
			t.Errorf("refused by %q with a retry in %v, want own and an hour", subjects, retry)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantCode(t, "with a deadline", call(ctx, c, "m", succeed), codes.ResourceExhausted)
		if waited := time.Since(began); waited != 0 {
			t.Errorf("the calls took %v, want none of them to wait", waited)
		}
	})
}

func TestAClientObeysRetryInfo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, grpclimit.ClientOptions{})
		began := time.Now()
		var attempts []time.Duration
		err := call(t.Context(), c, "m", func() error {
			if attempts = append(attempts, time.Since(began)); len(attempts) < 3 {
				return refuse(2 * time.Second)
			}
			return nil
		})
		wantCode(t, "after two refusals", err, codes.OK)
		if len(attempts) != 3 || attempts[1] < 2*time.Second || attempts[1] > 2200*time.Millisecond || attempts[2]-attempts[1] < 2*time.Second {
			t.Errorf("attempts at %v, want three, 2 s apart and up to a tenth more", attempts)
		}
	})
}

// One refusal makes all calls of the method wait; they do not all continue at once. Other methods continue.
func TestOneRefusalPausesTheCallsOfItsScope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, grpclimit.ClientOptions{})
		began, reached := time.Now(), 0
		instants := map[time.Duration]bool{}
		var mu sync.Mutex
		server := func() error {
			mu.Lock()
			defer mu.Unlock()
			if reached++; reached == 1 {
				return refuse(10 * time.Second)
			}
			instants[time.Since(began)] = true
			return nil
		}
		var calls sync.WaitGroup
		for range 50 {
			calls.Go(func() { wantCode(t, "paused", call(t.Context(), c, "m", server), codes.OK) })
			synctest.Wait()
		}
		if err := call(t.Context(), c, "other", succeed); err != nil || time.Since(began) != 0 {
			t.Errorf("another method: %v after %v, want no wait", err, time.Since(began))
		}
		calls.Wait()
		if reached != 51 {
			t.Errorf("the server was asked %d times, want 51: once for the refusal", reached)
		}
		for at := range instants {
			if at < 10*time.Second || at > 11*time.Second {
				t.Errorf("a call went on after %v, want within 10 and 11 s", at)
			}
		}
		if len(instants) < 10 {
			t.Errorf("50 calls went on at %d instants, want them apart", len(instants))
		}
	})
}

func TestAClientFailsFastWhenTheServerSaysLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, grpclimit.ClientOptions{})
		reached := 0
		server := func() error {
			reached++
			return refuse(time.Hour)
		}
		began := time.Now()
		for range 3 {
			err := call(t.Context(), c, "m", server)
			wantCode(t, "an hour", err, codes.ResourceExhausted)
			if retry, _ := details(t, err); retry != time.Hour {
				t.Errorf("retry in %v, want the server's hour", retry)
			}
		}
		if reached != 1 || time.Since(began) != 0 {
			t.Errorf("the server was asked %d times in %v, want once and no wait", reached, time.Since(began))
		}
		time.Sleep(61 * time.Minute)
		wantCode(t, "after the hour", call(t.Context(), c, "m", succeed), codes.OK)
	})
}

func TestOtherErrorsAndEndlessRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, grpclimit.ClientOptions{})
		for _, refusal := range []error{status.Error(codes.ResourceExhausted, "no RetryInfo"), status.Error(codes.NotFound, "x"), errors.New("y")} {
			reached := 0
			err := call(t.Context(), c, "m", func() error {
				reached++
				return refusal
			})
			if err != refusal || reached != 1 {
				t.Errorf("%v after %d calls, want %v after 1", err, reached, refusal)
			}
		}
		reached := 0
		err := call(t.Context(), c, "m", func() error {
			reached++
			return refuse(0)
		})
		wantCode(t, "always refused", err, codes.ResourceExhausted)
		if reached != 5 {
			t.Errorf("the server was asked %d times, want 5", reached)
		}
	})
}

func TestACallThatIsCancelledStopsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, grpclimit.ClientOptions{Rules: []grpclimit.Rule{{Limit: "1/m"}}, MaxWait: time.Hour})
		wantCode(t, "first", call(t.Context(), c, "m", succeed), codes.OK)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		began := time.Now()
		wantCode(t, "cancelled", call(ctx, c, "m", succeed), codes.Canceled)
		if waited := time.Since(began); waited != time.Second {
			t.Errorf("waited %v, want a second", waited)
		}
	})
}

func TestAClientsSlotsAreHeldForTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, grpclimit.ClientOptions{Rules: []grpclimit.Rule{{Limit: "concurrency 2"}}})
		var mu sync.Mutex
		inside, most := 0, 0
		var calls sync.WaitGroup
		for range 6 {
			calls.Go(func() {
				wantCode(t, "call", call(t.Context(), c, "m", func() error {
					mu.Lock()
					inside++
					most = max(most, inside)
					mu.Unlock()
					time.Sleep(time.Second)
					mu.Lock()
					inside--
					mu.Unlock()
					return nil
				}), codes.OK)
			})
		}
		calls.Wait()
		if most != 2 {
			t.Errorf("%d calls at a time, want 2", most)
		}
	})
}

// A server of this package refuses, and a client of this package obeys, over a real connection.
func TestClientAndServerAgree(t *testing.T) {
	limited, err := grpclimit.PerClient("token bucket 20/s burst 2")
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(t, grpclimit.ClientOptions{})
	s := &service{}
	client := dial(t, serve(t, limited, s), "127.0.0.1", grpc.WithUnaryInterceptor(c.Unary), grpc.WithStreamInterceptor(c.Stream))
	began := time.Now()
	for range 6 {
		wantCode(t, "call", unary(t.Context(), client), codes.OK)
	}
	if took := time.Since(began); took < 200*time.Millisecond {
		t.Errorf("6 calls at 20/s with a burst of 2 took %v, want at least 200ms", took)
	}
}

// Messages of a stream wait for the client's limit, and the stream's end releases its slot.
func TestMessagesOfAClientsStreamWait(t *testing.T) {
	c := newClient(t, grpclimit.ClientOptions{EachMessage: true, Rules: []grpclimit.Rule{{Limit: "token bucket 20/s burst 1 and concurrency 1"}}})
	client := dial(t, serve(t, nil, &service{}), "127.0.0.1", grpc.WithStreamInterceptor(c.Stream))
	began := time.Now()
	for range 2 { // the second stream needs the slot of the first
		wantCode(t, "stream", talk(t, client, 3), codes.OK)
	}
	if took := time.Since(began); took < 250*time.Millisecond {
		t.Errorf("6 messages at 20/s took %v, want at least 250ms", took)
	}
	for range 2 { // a stream with one answer ends with it
		stream, err := client.StreamingInputCall(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Send(&test.StreamingInputCallRequest{}); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.CloseAndRecv(); err != nil {
			t.Fatal(err)
		}
	}
}

// A stream that a server refuses cannot be repeated, but the next one waits.
func TestTheStreamAfterARefusalWaits(t *testing.T) {
	limited, err := grpclimit.PerClient("token bucket 10/s burst 1")
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(t, grpclimit.ClientOptions{})
	client := dial(t, serve(t, limited, &service{}), "127.0.0.1", grpc.WithStreamInterceptor(c.Stream))
	for _, want := range []codes.Code{codes.OK, codes.ResourceExhausted, codes.OK, codes.ResourceExhausted, codes.OK} {
		wantCode(t, "stream", talk(t, client, 1), want)
	}
}
