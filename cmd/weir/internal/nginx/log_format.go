package nginx

import (
	"slices"
	"strings"
)

// combined is nginx's log format combined, and how long a request took, which tells when it was decided.
const combined = `$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" $request_time`

// LogFormat returns a log_format of nginx that has all attributes that rules mention.
func LogFormat(mentions []string) string {
	format := combined
	for _, name := range slices.Sorted(slices.Values(mentions)) {
		switch header, isHeader := strings.CutPrefix(name, "header."); {
		case name == "host":
			format += ` "$host"`
		case name == "port":
			format += ` $server_port`
		case isHeader && header != "referer" && header != "user-agent":
			format += ` "$http_` + strings.ReplaceAll(header, "-", "_") + `"`
		}
	}
	return format
}
