package project

import (
	"fmt"
	"io"

	"github.com/buildpacks/pack/pkg/logging"
)

// warningLog keeps what pack's parser warns of and drops the rest.
type warningLog struct{ lines []string }

var _ logging.Logger = (*warningLog)(nil)

func (l *warningLog) Warn(msg string)               { l.lines = append(l.lines, oneLine(msg)) }
func (l *warningLog) Warnf(format string, v ...any) { l.Warn(fmt.Sprintf(format, v...)) }
func (*warningLog) Debug(string)                    {}
func (*warningLog) Debugf(string, ...any)           {}
func (*warningLog) Info(string)                     {}
func (*warningLog) Infof(string, ...any)            {}
func (*warningLog) Error(string)                    {}
func (*warningLog) Errorf(string, ...any)           {}
func (*warningLog) Writer() io.Writer               { return io.Discard }
func (*warningLog) IsVerbose() bool                 { return false }
