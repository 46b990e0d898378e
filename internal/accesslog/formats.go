package accesslog

import (
	"bytes"
	"fmt"
	"strings"
	"time"
)

// Stamp says which end of a request the time of a line is.
type Stamp uint8

const (
	Unknown Stamp = iota
	Starts        // the server stamps a request as it begins
	Ends          // the server stamps a request when it has answered
)

// format is how some server writes its lines. The time and the client are lists of variables, the best first; empty lists
// stand for all the usual names, and a dash for none.
type format struct {
	name    string
	shape   shape
	pattern string
	time    string
	client  string
	needs   string // further variables that the format must have
	front   bool   // the list of addresses stands in front, where most servers write the client
	stamp   Stamp
	took    string            // the variable with the duration of the request
	unit    time.Duration     // of took
	told    bool              // by the user
	named   map[string]string // fields of JSON lines, by the variables that the user has said they are
	exact   bool              // a dash is a value like any other
}

// shape is how a format finds its variables.
type shape uint8

const (
	byPattern shape = iota
	byJSON
	byColumns // named by the first line
	byFields  // the W3C's: named by lines that begin with #Fields:
)

const (
	clf    = ` - $remote_user` + clfEnd
	clfEnd = ` [$time_local] "$request" $status $body_bytes_sent`
	tail   = ` "$http_referer" "$http_user_agent"`

	npm     = ` - $request_method $scheme $host "$request_uri" [Client $remote_addr] [Length $body_bytes_sent] [Gzip $gzip_ratio]` // Nginx Proxy Manager
	npmTail = ` "$http_user_agent" "$http_referer"`
)

// formats are all formats, a special one before a general one.
var formats = []format{
	{name: "traefik", pattern: `$remote_addr` + clf + tail + ` $request_count "$router" "$server" ${took}ms`, stamp: Starts, took: "took", unit: time.Millisecond},
	{name: "nginx-main", pattern: `$remote_addr` + clf + tail + ` "$http_x_forwarded_for"`, stamp: Ends},
	{name: "ingress-nginx", pattern: `$remote_addr` + clf + tail + ` $request_length $request_time [$proxy_upstream_name] [$proxy_alternative_upstream_name] ` +
		`$upstream_addr $upstream_response_length $upstream_response_time $upstream_status $req_id`, stamp: Ends, took: "request_time", unit: time.Second},
	{name: "npm", pattern: `[$time_local] $upstream_cache_status $upstream_status $status` + npm + ` [Sent-to $server]` + npmTail, stamp: Ends},
	{name: "npm-standard", pattern: `[$time_local] $status` + npm + npmTail, stamp: Ends},
	{name: "combined", pattern: `$remote_addr` + clf + tail, stamp: Ends},
	{name: "vhost", pattern: `$vhost $remote_addr` + clf + tail, stamp: Ends},
	{name: "forwarded", pattern: `$http_x_forwarded_for $remote_addr` + clf + tail, front: true, stamp: Ends},
	{name: "common", pattern: `$remote_addr` + clf, stamp: Ends},
	{name: "common-vhost", pattern: `$vhost $remote_addr` + clf, stamp: Ends},
	{name: "common-forwarded", pattern: `$http_x_forwarded_for $remote_addr` + clf, front: true, stamp: Ends},
	{name: "combined-ident", pattern: `$remote_addr $ident $remote_user` + clfEnd + tail, stamp: Ends},
	{name: "common-ident", pattern: `$remote_addr $ident $remote_user` + clfEnd, stamp: Ends},
	{name: "istio", pattern: `[$start_time] "$method $uri $protocol" $status $response_flags $response_code_details $connection_termination_details ` +
		`"$upstream_transport_failure_reason" $bytes_received $bytes_sent $duration $upstream_service_time "$http_x_forwarded_for" "$http_user_agent" ` +
		`"$http_x_request_id" "$host" "$upstream_host" $upstream_cluster $upstream_local_address $downstream_local_address $downstream_remote_address`,
		stamp: Starts, took: "duration", unit: time.Millisecond},
	{name: "envoy", pattern: `[$start_time] "$method $uri $protocol" $status $response_flags $bytes_received $bytes_sent $duration $upstream_service_time ` +
		`"$http_x_forwarded_for" "$http_user_agent" "$http_x_request_id" "$host" "$upstream_host"`,
		client: "http_x_forwarded_for", stamp: Starts, took: "duration", unit: time.Millisecond},
	{name: "haproxy", pattern: `$client_port [$time_local] $frontend $backend/$server $request_timer/$queue_timer/$connect_timer/$response_timer/$took ` +
		`$status $bytes_read $request_cookie $response_cookie $termination_state $connections $queues "$request"`,
		client: clientPort, stamp: Starts, took: "took", unit: time.Millisecond},
	{name: "alb", pattern: `$type $time $elb $client_port $target_port $request_processing_time $target_processing_time $response_processing_time ` +
		`$elb_status_code $target_status_code $received_bytes $sent_bytes "$request" "$user_agent" $ssl_cipher $ssl_protocol $target_group_arn ` +
		`"$trace_id" "$server_name" "$chosen_cert_arn" $matched_rule_priority $request_creation_time`, time: "request_creation_time", client: clientPort, stamp: Starts},
	{name: "s3", pattern: `$bucket_owner $bucket [$time_local] $remote_ip $requester $request_id $operation $key "$request" $status $error_code ` +
		`$bytes_sent $object_size $took $turn_around_time` + tail, stamp: Starts, took: "took", unit: time.Millisecond},
	{name: "cloudfront", shape: byFields, time: "date time", client: "c-ip", needs: "x-edge-location", stamp: Ends, took: "time-taken", unit: time.Second},
	{name: "cloudfront-json", shape: byJSON, time: "date time", client: "c-ip", needs: "x-edge-location", stamp: Ends, took: "time-taken", unit: time.Second},
	{name: "iis", shape: byFields, client: "c-ip", stamp: Ends, took: "time-taken", unit: time.Millisecond},
	{name: "caddy", shape: byJSON, time: "ts", client: "request.client_ip request.remote_ip", stamp: Ends, took: "duration", unit: time.Second},
	{name: "traefik-json", shape: byJSON, time: "StartUTC StartLocal", client: "ClientHost", stamp: Starts, took: "Duration", unit: 1},
	{name: "envoy-json", shape: byJSON, time: "start_time", client: "downstream_remote_address x_forwarded_for", stamp: Starts, took: "duration", unit: time.Millisecond},
	{name: "nginx-json", shape: byJSON, time: "time_iso8601 time_local msec", client: "remote_addr", stamp: Ends, took: "request_time", unit: time.Second},
	{name: "cloudflare", shape: byJSON, time: "EdgeStartTimestamp", client: "ClientIP", stamp: Starts},
	{name: "gcp", shape: byJSON, time: "timestamp", client: "httpRequest.remoteIp", took: "httpRequest.latency", unit: time.Second},
	{name: "record", shape: byJSON, time: "time", client: "-", needs: "rule key cost allowed", stamp: Starts, exact: true},
	{name: "json", shape: byJSON},
	{name: "csv", shape: byColumns},
}

// wrappers are the texts that collectors write in front of the lines of a server, or around them.
var wrappers = []format{
	{name: "no collector", pattern: `$line`},
	{name: "docker", shape: byJSON},
	{name: "cri", pattern: `$stamp $stream F $line`},
	{name: "kubectl", pattern: `[pod/$pod] $line`},
	{name: "timestamps", pattern: `$stamp $line`},
	{name: "compose", pattern: `$container | $line`},
	{name: "syslog", pattern: `$month $day $clock $machine $program: $line`},
	{name: "syslog", pattern: `<$priority>$month $day $clock $machine $program: $line`},
	{name: "syslog", pattern: `$stamp $machine $program: $line`},
	{name: "syslog", pattern: `<$priority>1 $stamp $machine $program $process $message - $line`},
	{name: "go log", pattern: `$day_stamp $clock $line`},
}

// Variables that are read in a way of their own, and those of wrappers that hold the line of the server.
const (
	clientPort = "client_port" // an address and a port, without brackets around IPv6
	restOfLine = "line"
	dockerLine = "log"
)

// checks are conditions on the values of some variables. Without them the pattern does not fit.
var checks = map[string]func([]byte) bool{
	"status":               func(b []byte) bool { return len(b) == 3 && allDigits(b) },
	"vhost":                isHostName,
	"ident":                func(b []byte) bool { return !namesAddress(b) },
	"stamp":                func(b []byte) bool { _, why := parseTime(b); return why == "" && len(b) > 18 },
	"stream":               func(b []byte) bool { return string(b) == "stdout" || string(b) == "stderr" },
	"month":                func(b []byte) bool { return monthOf(b) > 0 },
	"day":                  func(b []byte) bool { return len(b) < 3 && allDigits(b) },
	"type":                 isWord,
	"bucket":               isWord,
	"priority":             allDigits,
	"clock":                func(b []byte) bool { return len(b) >= 8 && b[2] == ':' && b[5] == ':' },
	"day_stamp":            func(b []byte) bool { return len(b) == 10 && b[4] == b[7] && allDigits(b[:4]) },
	"http_x_forwarded_for": func(b []byte) bool { return string(b) == "-" || len(b) == 0 || namesAddress(b) },
}

// isWord reports whether b has no space, as a value has before a time that nothing but a space separates from it.
func isWord(b []byte) bool { return bytes.IndexByte(b, ' ') < 0 }

func allDigits(b []byte) bool {
	for _, c := range b {
		if !isDigit(c) {
			return false
		}
	}
	return len(b) > 0
}

// Formats returns the names of the formats.
func Formats() (names []string) {
	for i := range formats {
		names = append(names, formats[i].name)
	}
	return names
}

// formatsOf returns the formats that a text names: all of them for none, one by its name, or that of a pattern.
func formatsOf(text string) ([]format, error) {
	if text == "" {
		return formats, nil
	}
	for _, f := range formats {
		if f.name == text {
			f.told = true
			return []format{f}, nil
		}
	}
	if words := strings.Fields(text); len(words) > 1 && words[0] == "json" {
		f, err := namedJSON(words[1:])
		return []format{f}, err
	}
	if !strings.Contains(text, "$") {
		return nil, fmt.Errorf("format %q is not known, and no pattern with variables", text)
	}
	f := format{name: "pattern", pattern: text, client: strings.Join(clientNames, " ") + " " + clientPort, stamp: Ends, took: "request_time", unit: time.Second, told: true}
	p, err := parsePattern(text, false)
	if err != nil {
		return nil, fmt.Errorf("format: %w", err)
	}
	if !anyOf(p.names(), timeNames) {
		return nil, fmt.Errorf("format %q has no time: a pattern has $time_local, $time_iso8601 or $msec", text)
	}
	return []format{f}, nil
}

func anyOf(names, of []string) bool {
	for _, name := range names {
		for _, other := range of {
			if name == other {
				return true
			}
		}
	}
	return false
}
