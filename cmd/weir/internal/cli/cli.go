// Package cli holds what the commands of the program share: errors with hints, texts of limits, flags, streams, signals,
// progress, plots and logs. It knows no command.
package cli
