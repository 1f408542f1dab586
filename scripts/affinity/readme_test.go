//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/app/config"
	programs "github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// TestReadme runs the commands of the README's first screen.
func TestReadme(t *testing.T) {
	runGuide(t, "../../README.md", startEngine(t, stack.Options{RetentionDays: 90}).URL)
}

// TestGuides runs the commands of each guide, with the engine that it starts.
func TestGuides(t *testing.T) {
	pages, err := filepath.Glob("../../functions/docs/guides/*.md")
	if err != nil || len(pages) < 2 {
		t.Fatalf("%d guides, %v", len(pages), err)
	}
	for _, page := range pages {
		name := strings.TrimSuffix(filepath.Base(page), ".md")
		switch name {
		case "README", "install": // have no commands for an engine
			continue
		case "algolia", "web-page", "warehouse", "sign-in", "consent": // have tests of their own
			continue
		case "console": // is for a browser: see TestStory of functions/console
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runGuide(t, page, "")
		})
	}
}

// TestGuidesSignIn runs the guide for apps with users who sign in, with an engine that links tokens already. The
// lines of pages are run by scripts/clients.
func TestGuidesSignIn(t *testing.T) {
	s := startEngine(t, stack.Options{RetentionDays: 90})
	for _, mode := range []config.IdentityMode{config.IdentityCollect, config.IdentityLink} {
		_, err := s.Backends.CachedConfig.SetIdentity(t.Context(), "demo", config.Identity{Mode: mode, Lookback: config.DefaultLookback}, 0)
		must(t, err)
	}
	runGuide(t, "../../functions/docs/guides/sign-in.md", s.URL)
}

// TestGuidesWarehouse runs the guide for analysts, with the program that writes Parquet in the PATH.
func TestGuidesWarehouse(t *testing.T) {
	programs.Start(t, programs.Builds)
	folder := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", folder, "../affinity-warehouse").CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v\n%s", err, out)
	}
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	runGuide(t, "../../functions/docs/guides/warehouse.md", "")
}

// TestGuidesAlgolia runs the guide for those who come from Algolia, with a stand-in for
// Algolia.
func TestGuidesAlgolia(t *testing.T) {
	fake := newFakeAlgolia(t, 3)
	fake.objects[0] = `{"brand":"Stridewell","color":"Yellow","objectID":"runner-1"}`
	fake.profiles = map[string]string{"ann": `{"brand":{"Stridewell":12,"Kestrel":4},"color":{"Yellow":12}}`}
	runGuide(t, "../../functions/docs/guides/algolia.md", "")
}
