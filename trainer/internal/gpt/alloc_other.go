//go:build !linux

package gpt

func adviseHuge([]byte) {}
