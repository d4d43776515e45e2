// Package sdks holds the tests that decode the responses of the fake providers with the vendors' SDKs. They stand apart because
// fuzzing a package instruments everything that its tests import, and the SDKs take minutes.
package sdks
