module github.com/weirflow/weir/examples/from/redisrecipes

go 1.26.0

replace github.com/weirflow/weir => ../../..

replace github.com/weirflow/weir/redislimit => ../../../redislimit

require (
	github.com/redis/rueidis v1.0.79
	github.com/weirflow/weir v0.0.0
	github.com/weirflow/weir/redislimit v0.0.0
)

require golang.org/x/sys v0.47.0 // indirect
