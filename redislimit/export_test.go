package redislimit

// WatchTimers is for tests of the other package.
var WatchTimers = watchTimers
