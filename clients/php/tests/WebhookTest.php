<?php

declare(strict_types=1);

namespace Paloma\Tests;

use Paloma\Webhook;
use Paloma\WebhookVerificationException;
use PHPUnit\Framework\TestCase;

/** With a request that the gateway sent while two secrets were valid. */
final class WebhookTest extends TestCase
{
    private string $body;
    /** @var array<string, string> */
    private array $headers;
    /** @var list<string> */
    private array $secrets;
    /** @var array<string, string> */
    private array $plain;

    protected function setUp(): void
    {
        $file = (string) file_get_contents((string) getenv('WEBHOOK'));
        /** @var array{body: string, headers: array<string, string>, secrets: list<string>} $got */
        $got = json_decode($file, true, flags: JSON_THROW_ON_ERROR);
        $this->body = (string) base64_decode($got['body'], true);
        $this->headers = $got['headers'];
        $this->secrets = $got['secrets'];
        $this->plain = array_filter($got['headers'], static fn ($n) => str_starts_with($n, 'x-webhook-'), ARRAY_FILTER_USE_KEY);
    }

    public function testEitherHeaderAndEitherSecret(): void
    {
        $psr = array_map(static fn (string $value): array => [$value], array_change_key_case($this->headers, CASE_UPPER));
        foreach ([$this->headers, $this->plain, $psr] as $headers) {
            foreach ([$this->secrets[0], $this->secrets[1], $this->secrets] as $secrets) {
                self::assertSame('webhook.test', Webhook::verify($this->body, $headers, $secrets)['event']);
            }
        }
    }

    /** @return iterable<string, array{callable(self): array{string, array<string, string>, string|list<string>, 3?: int}}> */
    public function falseRequests(): iterable
    {
        yield 'another body' => [static fn (self $t) => [$t->body . ' ', $t->headers, $t->secrets]];
        yield 'another body, plain' => [static fn (self $t) => [$t->body . ' ', $t->plain, $t->secrets]];
        yield 'no signature' => [static fn (self $t) => [$t->body, [], $t->secrets]];
        yield 'another secret' => [static fn (self $t) => [$t->body, $t->headers, 'whsec_' . base64_encode('0')]];
        yield 'no secret' => [static fn (self $t) => [$t->body, $t->plain, []]];
        $late = ['webhook-timestamp' => (string) (time() - 3600)];
        yield 'another timestamp' => [static fn (self $t) => [$t->body, $late + $t->headers, $t->secrets]];
        yield 'of long ago' => [static fn (self $t) => [$t->body, $t->headers, $t->secrets, -1]];
    }

    /**
     * @dataProvider falseRequests
     * @param callable(self): array{string, array<string, string>, string|list<string>, 3?: int} $request
     */
    public function testEverythingElseIsRefused(callable $request): void
    {
        $this->expectException(WebhookVerificationException::class);
        Webhook::verify(...$request($this));
    }
}
