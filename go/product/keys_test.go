package product

import (
	"fmt"
	"testing"
)

func TestSecretKeysDoNotPrint(t *testing.T) {
	key, err := NewSecret(mustGet("wide4"), label("secret"))
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"%v", "%+v", "%s", "%#v"} {
		if said := fmt.Sprintf(format, key); said != "product.Secret(wide4)" {
			t.Fatalf("%s prints %.60s", format, said)
		}
	}
}
