module github.com/weirflow/weir/examples

go 1.26.0

replace github.com/weirflow/weir => ..

replace github.com/weirflow/weir/fetch => ../fetch

replace github.com/weirflow/weir/redislimit => ../redislimit

require (
	github.com/go-chi/chi/v5 v5.5.0
	github.com/redis/rueidis v1.0.79
	github.com/weirflow/weir v0.0.0
	github.com/weirflow/weir/fetch v0.0.0
	github.com/weirflow/weir/redislimit v0.0.0
)

require (
	golang.org/x/net v0.60.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
	golang.org/x/text v0.42.0 // indirect
)
