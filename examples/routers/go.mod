module github.com/weirflow/weir/examples/routers

go 1.26.0

replace github.com/weirflow/weir => ../..

require (
	github.com/go-chi/chi/v5 v5.5.0
	github.com/weirflow/weir v0.0.0
)
