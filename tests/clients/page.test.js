// The web page in headless Chromium. Skipped by name where no Chromium is installed.

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";

import { chromium } from "playwright-core";

import { nano, numRunning, scripted, until } from "./support/servers.js";
import { schemas } from "./support/tools.js";

const executablePath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };
const DESKTOP = { viewport: { width: 1280, height: 800 } };

describe("web page", () => {
  if (!executablePath) {
    it("works in a browser", { skip: "no Chromium is installed" });
    return;
  }
  let browser, profile;

  before(async () => {
    profile = mkdtempSync(join(tmpdir(), "tandem-chromium-"));
    browser = await chromium.launch({
      executablePath,
      env: { ...process.env, HOME: profile },
      args: [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
      ],
    });
  });
  after(async () => {
    await browser?.close();
    rmSync(profile, { recursive: true, force: true });
  });

  /** Runs `use(page)` on a fresh profile and fails on anything that the page reports as wrong. */
  async function onPage(server, options, use) {
    const context = await browser.newContext(options);
    const problems = [];
    try {
      const page = await context.newPage();
      page.on("pageerror", (error) => problems.push(error.message));
      page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
      page.on("request", (request) => {
        if (!request.url().startsWith(server.url)) problems.push(`asks for ${request.url()}`);
      });
      await page.goto(server.url);
      await use(page);
    } finally {
      await context.close();
    }
    assert.deepEqual(problems, []);
  }

  const send = async (page, text) => {
    await page.getByLabel("Your message").fill(text);
    await page.keyboard.press("Enter");
  };
  const done = (page) => page.getByRole("button", { name: "Send", exact: true }).waitFor();
  const noThinking = async (page) => {
    await page.getByRole("button", { name: "Thinking" }).click();
  };

  it("chats, shows the figures and keeps the chat over a reload", async () => {
    await onPage(nano, DESKTOP, async (page) => {
      await noThinking(page);
      await page.getByText("What is the capital of France?").click();
      await done(page);
      const answer = page.locator(".message.assistant").last();
      await answer.getByText("The capital of France is Paris.").waitFor();
      assert.match(await answer.locator(".metrics").textContent(), /\d+ tokens · [\d.]+ tokens\/s/);
      assert.match(await page.locator("#context-text").textContent(), /^\d+ of [\d,]+ tokens$/);
      await page.reload();
      await page.locator(".chat-list .open").first().click();
      await page.getByText("The capital of France is Paris.").waitFor();
    });
  });

  it("folds the reasoning away and opens it on request", async () => {
    await onPage(nano, DESKTOP, async (page) => {
      await send(page, "What is 37 + 45?");
      await done(page);
      const thoughts = page.locator(".thinking-text");
      assert.match(await thoughts.textContent(), /Total 82\./);
      assert.equal(await thoughts.isVisible(), false);
      await page.locator(".thinking summary").click();
      assert.equal(await thoughts.isVisible(), true);
    });
  });

  it("shows tool calls, takes their results and goes on", async () => {
    await onPage(nano, DESKTOP, async (page) => {
      await noThinking(page);
      await page.getByRole("button", { name: "Settings" }).click();
      await page.getByLabel("Temperature").fill("0");
      await page.getByLabel("Tools").fill("[not json");
      assert.notEqual(await page.locator("#set-tools-error").textContent(), "");
      await page.getByLabel("Tools").fill(JSON.stringify([schemas.add]));
      await page.getByRole("button", { name: "Done" }).click();
      await send(page, "Use the tool to add 123 and 456.");
      const card = page.getByRole("region", { name: "Call of add" });
      await card.getByLabel("Result").fill("579");
      await card.getByRole("button", { name: "Send result" }).click();
      await page.getByText("The result is 579.").waitFor();
    });
  });

  it("stops an answer by the button and by Escape", async () => {
    await onPage(scripted, DESKTOP, async (page) => {
      for (const stop of [() => page.getByRole("button", { name: "Stop", exact: true }).click(), () => page.keyboard.press("Escape")]) {
        await send(page, "never stop");
        await page.locator(".message.assistant").last().getByText("again and again").waitFor();
        await stop();
        await done(page);
        assert.match(await page.locator(".metrics").last().textContent(), /stopped/);
        await until(async () => (await numRunning(scripted)) === 0, 3000, "the server stopped too");
      }
    });
  });

  it("shows markup that a model writes as text", async () => {
    await onPage(scripted, DESKTOP, async (page) => {
      await send(page, "write markup");
      await done(page);
      const content = page.locator(".content").last();
      assert.match(await content.textContent(), /<script>document\.title = "owned"<\/script>/);
      assert.equal(await content.locator("script, img, b, a").count(), 0);
      assert.equal(await content.locator("pre code").textContent(), 'std::puts("<b>");');
      assert.equal(await content.locator("strong").textContent(), "bold");
      assert.notEqual(await page.title(), "owned");
    });
  });

  it("writes a new line with Shift+Enter and sends with Enter", async () => {
    await onPage(scripted, DESKTOP, async (page) => {
      await page.getByLabel("Your message").fill("first");
      await page.keyboard.press("Shift+Enter");
      await page.keyboard.type("second");
      assert.equal(await page.getByLabel("Your message").inputValue(), "first\nsecond");
      assert.equal(await page.locator(".message").count(), 0);
      await page.keyboard.press("Enter");
      await done(page);
      assert.equal(await page.locator(".bubble").textContent(), "first\nsecond");
    });
  });

  it("shows the server's refusals", async () => {
    const context = await browser.newContext(DESKTOP);
    const page = await context.newPage();
    await page.goto(nano.url);
    await page.getByLabel("Your message").fill("word ".repeat(60000));
    await page.keyboard.press("Enter");
    await page.getByRole("alert").getByText(/too long/).waitFor();
    await context.close();
  });

  it("shows a live status board", async () => {
    await onPage(scripted, DESKTOP, async (page) => {
      await send(page, "never stop");
      await page.getByRole("button", { name: "Server status" }).first().click();
      const board = page.getByRole("complementary", { name: "Server status" });
      await board.getByRole("heading", { name: "Requests" }).waitFor();
      const running = board.locator("dt", { hasText: "Running" }).locator("+ dd");
      await until(async () => (await running.textContent()) === "1", 5000, "one request is shown as running");
      await page.getByRole("button", { name: "Stop", exact: true }).click();
      await until(async () => (await running.textContent()) === "0", 5000, "no request is shown as running");
    });
  });

  for (const [name, device] of [["desktop", DESKTOP], ["phone", PHONE]]) {
    for (const colorScheme of ["light", "dark"]) {
      it(`fits a ${name} in ${colorScheme} mode`, async () => {
        await onPage(scripted, { ...device, colorScheme }, async (page) => {
          await send(page, "write markup");
          await done(page);
          const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
          assert.ok(overflow <= 0, `${overflow} px wider than the screen`);
          const box = await page.getByRole("button", { name: "Send", exact: true }).boundingBox();
          assert.ok(box.y + box.height <= device.viewport.height, "the composer is off the screen");
          const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
          assert.equal(ground === "rgb(255, 255, 255)", colorScheme === "light", ground);
          if (name === "phone") {
            await page.getByRole("button", { name: "Open the list of chats" }).click();
            await page.getByRole("button", { name: "New chat" }).click();
            assert.equal(await page.locator(".message").count(), 0);
          }
        });
      });
    }
  }

  it("names every control for those who cannot see it", async () => {
    await onPage(nano, DESKTOP, async (page) => {
      const nameless = await page.evaluate(() =>
        [...document.querySelectorAll("button, input, textarea")]
          .filter((node) => !node.textContent.trim() && !node.getAttribute("aria-label") && !node.labels?.length)
          .map((node) => node.outerHTML.slice(0, 80)),
      );
      assert.deepEqual(nameless, []);
    });
  });
});
