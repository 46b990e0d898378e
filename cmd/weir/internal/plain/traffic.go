package plain

import "strings"

// Traffics are an example of each made-up traffic.
var Traffics = []string{
	"constant 50/s", "poisson 50/s", "burst 200/s for 1s every 10s", "ramp 1/s to 100/s over 1m", "diurnal 5/s to 50/s every 1d",
	"flash 10/s to 500/s at 20s for 5s", "storm 500 at 5s", "log access.log thin 10% speed 60",
	"poisson 50/s from 100 clients skew 1.1", "poisson 50/s cost 1 to 10", "constant 50/s retry every 100ms", "constant 50/s retry obeying jitter 1s",
}

// TrafficForms are the hints below an unreadable traffic.
var TrafficForms = []string{
	"traffic looks like: " + strings.Join(Traffics[:4], ", ") + "; join several with 'and'",
	"or: " + strings.Join(Traffics[4:8], ", "),
	"after it may follow: from 100 clients skew 1.1; cost 1 to 10; retry every 100ms; 'weir simulate --help' shows all",
}
