module github.com/weirflow/weir/redislimit

go 1.26

replace github.com/weirflow/weir => ../

require (
	github.com/redis/rueidis v1.0.79
	github.com/weirflow/weir v0.0.0
)

require golang.org/x/sys v0.47.0 // indirect
