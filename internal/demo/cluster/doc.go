// Package cluster creates and deletes the demo's kind cluster: its Docker
// network, the configuration that this host needs, and the pods' network. It
// installs nothing in it.
package cluster
