//go:build !linux

package main

// peakRSS is not measured on this system.
func peakRSS() float64 { return 0 }
