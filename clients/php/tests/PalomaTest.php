<?php

declare(strict_types=1);

namespace Paloma\Tests;

use GuzzleHttp\Client;
use GuzzleHttp\Psr7\HttpFactory;
use Paloma\EventGapException;
use Paloma\Paloma;
use Paloma\PalomaException;
use PHPUnit\Framework\TestCase;

/** Against a real gateway: scripts/checks/clients.ts starts it and says in the environment where it is. */
final class PalomaTest extends TestCase
{
    private Paloma $paloma;
    private string $to;

    protected function setUp(): void
    {
        $this->paloma = self::client(self::env('BASE_URL'));
        $this->to = self::env('TO');
    }

    private static function env(string $name): string
    {
        return (string) getenv($name);
    }

    private static function client(string $baseUrl): Paloma
    {
        return new Paloma($baseUrl, self::env('API_KEY'), new Client(['timeout' => 30]), new HttpFactory());
    }

    /** Answers as a gateway does that is busy or has forgotten events. */
    private function scripted(string $script): Paloma
    {
        return self::client(self::env('SCRIPTED_URL') . "/{$script}/{$this->getName()}/v1");
    }

    /**
     * Waits until the phone has such a message.
     *
     * @param callable(array<string, mixed>): bool $fits
     * @return array<string, mixed>
     */
    private function arrival(callable $fits): array
    {
        for ($i = 0; $i < 600; $i++) {
            $inbox = (string) file_get_contents(self::env('CONTROL_URL') . "/phones/{$this->to}/messages");
            /** @var list<array<string, mixed>> $messages */
            $messages = json_decode($inbox, true, flags: JSON_THROW_ON_ERROR);
            foreach ($messages as $message) {
                if ($fits($message)) {
                    return $message;
                }
            }
            usleep(50_000);
        }
        self::fail('the phone has no such message');
    }

    public function testATextArrives(): void
    {
        $this->paloma->sendText(['to' => $this->to, 'text' => 'from PHP: 👋']);
        self::assertSame($this->to, $this->paloma->request('GET', '/messages/history')['data'][0]['to']);
        $this->arrival(static fn ($m) => $m['text'] === 'from PHP: 👋');
    }

    public function testAnotherKindArrives(): void
    {
        $this->paloma->send('location', ['to' => $this->to, 'latitude' => 51.0, 'longitude' => -0.1]);
        $message = $this->arrival(static fn ($m) => $m['type'] === 'locationMessage');
        self::assertEquals(51, $message['location']['latitude']);
    }

    public function testARefusalHasStatusCodeAndProblem(): void
    {
        try {
            $this->paloma->sendText(['to' => $this->to, 'text' => '']);
            self::fail('it was accepted');
        } catch (PalomaException $error) {
            self::assertSame([400, 'validation_failed'], [$error->status, $error->code]);
            self::assertSame('text', $error->problem['errors'][0]['path']);
        }
    }

    public function testALargeFileIsAStream(): void
    {
        $path = (string) tempnam('.', 'large');
        $file = fopen($path, 'wb');
        self::assertNotFalse($file);
        for ($i = 0; $i < 24; $i++) {
            fwrite($file, random_bytes(1 << 20));
        }
        fclose($file);
        $before = self::residentKiB();
        $this->paloma->sendFile($path, ['to' => $this->to, 'caption' => 'large']);
        self::assertLessThan(8 * 1024, self::residentKiB() - $before, 'KiB more in memory, for a file of 24 MiB');
        $message = $this->arrival(static fn ($m) => $m['caption'] === 'large');
        self::assertSame(hash_file('sha256', $path), $message['sha256']);
        unlink($path);
    }

    /** At its peak. */
    private static function residentKiB(): int
    {
        return getrusage()['ru_maxrss'] ?? 0;
    }

    public function testEventsResume(): void
    {
        $first = $this->paloma->sendText(['to' => $this->to, 'text' => 'event one'])['messageId'];
        $second = $this->paloma->sendText(['to' => $this->to, 'text' => 'event two'])['messageId'];
        $seen = [];
        $cursor = null;
        // A new iterator for each event, as after a restart.
        while (!isset($seen[$second])) {
            $event = $this->paloma->events($cursor, ['message.sent'], poll: 0.05)->current();
            self::assertSame('message.sent', $event['event']);
            self::assertArrayNotHasKey($event['data']['messageId'], $seen);
            $cursor = $seen[$event['data']['messageId']] = $event['id'];
        }
        self::assertLessThan($seen[$second], $seen[$first]);
    }

    public function testAGapIsTold(): void
    {
        try {
            $this->scripted('gap')->events('evt_1')->current();
            self::fail('nothing was told');
        } catch (EventGapException $error) {
            self::assertSame('evt_1', $error->cursor);
        }
    }

    public function testRetryAfterIsKeptWithTheSameKey(): void
    {
        $begin = microtime(true);
        $keys = $this->scripted('busy')->request('POST', '/echo', body: [])['keys'];
        self::assertGreaterThanOrEqual(1, microtime(true) - $begin);
        self::assertCount(2, $keys);
        self::assertCount(1, array_unique($keys));
    }

    public function testAQuotaOfHoursIsNotWaitedFor(): void
    {
        try {
            $this->scripted('quota')->request('POST', '/echo', body: []);
            self::fail('it was accepted');
        } catch (PalomaException $error) {
            self::assertSame([429, 'quota_exceeded'], [$error->status, $error->code]);
        }
    }
}
