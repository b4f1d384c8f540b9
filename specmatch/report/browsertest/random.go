//go:build unix

package browsertest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
)

// Random says what [Browser.Act] does to a page.
type Random struct {
	Actions int
	Seed    uint64
	// Elements is a selector of the elements that are pressed, chosen from, moved and typed into. Those that cannot be
	// seen or are disabled are left alone, and so are downloads.
	Elements string
	Numbers  []float64 // for fields of numbers
	Texts    []string  // for fields of text
	// After is JavaScript that runs after each action. k is a random number from 0 to 999.
	After string
}

// act takes an action on a random one of the elements.
const act = `const usable = e => e.checkVisibility() && e.type !== "file" && !e.matches(":disabled");
	const all = [...document.querySelectorAll(task.Elements)].filter(usable);
	const e = all[pick %% all.length];
	const tell = (...names) => { for (const name of names) e.dispatchEvent(new Event(name, { bubbles: true })); };
	if (e.matches("select")) {
		e.selectedIndex = k %% e.options.length;
		tell("input", "change");
	} else if (e.type === "range") {
		e.value = Number(e.min) + k / 999 * (Number(e.max) - Number(e.min));
		tell("input", "change");
	} else if (e.type === "number") {
		e.value = task.Numbers[k %% task.Numbers.length];
		tell("input", "change");
	} else if (e.matches("input[type=text], input:not([type]), textarea")) {
		e.value = task.Texts[k %% task.Texts.length];
		tell("input", "change");
	} else {
		const box = e.getBoundingClientRect();
		e.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true,
			clientX: box.left + box.width * (k %% 97) / 97, clientY: box.top + box.height * (k %% 89) / 89 }));
	}
	if (k %% 3 === 0) await new Promise(r => setTimeout(r, k %% 50));`

// Act takes random actions on the page, the same for the same seed as long as the page answers alike. It ends at the
// first one after which a script has failed, and says which it was.
func (b *Browser) Act(r Random) {
	b.t.Helper()
	task, err := json.Marshal(r)
	if err != nil {
		b.t.Fatal(err)
	}
	b.Eval(`HTMLAnchorElement.prototype.click = () => {}`)
	rng := rand.New(rand.NewPCG(r.Seed, 0))
	for i := range r.Actions {
		pick, k := rng.IntN(1e6), rng.IntN(1000)
		const script = "(async () => { const task = %s, pick = %d, k = %d;\n" + act + "\n%s })()"
		b.Eval(fmt.Sprintf(script, task, pick, k, r.After))
		if len(b.Failed) > 0 {
			b.t.Fatalf("a script has failed after action %d of seed %d: %s", i+1, r.Seed, b.Failed[0])
		}
	}
}
