// Package deliveries has a table of what forges send to a webhook, and of what somebody
// might send in their name, each with the run that has to come of it or none: as data, so
// that the Triggers are judged by it in a test and in a cluster alike.
//
// It neither sends anything nor knows the Triggers. Pushes of real repositories are made
// by package pushevent.
package deliveries
