module github.com/weirflow/weir/examples/fallback

go 1.26.0

replace github.com/weirflow/weir => ../..

replace github.com/weirflow/weir/redislimit => ../../redislimit

require (
	github.com/go-chi/chi/v5 v5.5.0
	github.com/weirflow/weir v0.0.0
	github.com/weirflow/weir/redislimit v0.0.0
)

require (
	github.com/redis/rueidis v1.0.79 // indirect
	golang.org/x/sys v0.47.0 // indirect
)
