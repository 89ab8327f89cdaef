package pushevent

import "testing"

// The example of GitHub's documentation ("Validating webhook deliveries").
func TestSignatureIsThatOfTheDocumentation(t *testing.T) {
	const want = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
	if got := sha256Of([]byte("It's a Secret to Everybody"), []byte("Hello, World!")); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
