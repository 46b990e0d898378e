package servers

import (
	"context"
	"strings"

	"github.com/redis/rueidis"
)

// Channel is a channel of messages, on one shard of a cluster or on all servers.
type Channel struct {
	client *Client
	Name   string
	Shard  bool
}

// Channel returns a channel of messages.
func (c *Client) Channel(name string, shard bool) Channel { return Channel{c, name, shard} }

// Subscribe hears the messages of the channel until ctx ends.
func (c Channel) Subscribe(ctx context.Context, subscribed func(), hear func(message string)) error {
	known := c.client.Known()
	subscribe := known.B().Subscribe().Channel(c.Name).Build()
	if c.Shard {
		subscribe = known.B().Ssubscribe().Channel(c.Name).Build()
	}
	confirmed := func(s rueidis.PubSubSubscription) {
		if strings.HasSuffix(s.Kind, "subscribe") && !strings.Contains(s.Kind, "un") {
			subscribed()
		}
	}
	return known.Receive(rueidis.WithOnSubscriptionHook(ctx, confirmed), subscribe, func(m rueidis.PubSubMessage) { hear(m.Message) })
}

// Publish sends a message to the channel.
func (c Channel) Publish(ctx context.Context, message string) error {
	known := c.client.Known()
	publish := known.B().Publish().Channel(c.Name).Message(message).Build()
	if c.Shard {
		publish = known.B().Spublish().Channel(c.Name).Message(message).Build()
	}
	return known.Do(ctx, publish).Error()
}

// Unsubscribe ends a subscription, which the client keeps after subscribe.
func (c Channel) Unsubscribe(ctx context.Context) error {
	known := c.client.Known()
	unsubscribe := known.B().Unsubscribe().Channel(c.Name).Build()
	if c.Shard {
		unsubscribe = known.B().Sunsubscribe().Channel(c.Name).Build()
	}
	return known.Do(ctx, unsubscribe).Error()
}
