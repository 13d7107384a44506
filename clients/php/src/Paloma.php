<?php

declare(strict_types=1);

namespace Paloma;

use Psr\Http\Client\ClientExceptionInterface;
use Psr\Http\Client\ClientInterface;
use Psr\Http\Message\RequestFactoryInterface;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\StreamFactoryInterface;
use Psr\Http\Message\StreamInterface;

/**
 * An account's view of the gateway, with retries that are safe.
 *
 * @phpstan-import-type Acknowledgement from Types
 * @phpstan-import-type AnyEvent from Types
 * @phpstan-import-type EventName from Types
 * @phpstan-import-type EventPage from Types
 * @phpstan-import-type FileMessage from Types
 * @phpstan-import-type SendAnswers from Types
 * @phpstan-import-type Sends from Types
 * @phpstan-import-type TextMessage from Types
 */
final class Paloma
{
    private const RETRIED = [429, 502, 503, 504];
    private const REPEATABLE = ['GET', 'POST', 'PUT'];
    private const LONGEST_WAIT = 60;

    /**
     * @param string $baseUrl with `/v1`
     * @param ClientInterface $client any of PSR-18; its time limits are yours to set
     * @param RequestFactoryInterface&StreamFactoryInterface $factory of PSR-17
     * @param positive-int $attempts how often a request is tried in all; eight last half a minute, a restart of the gateway
     */
    public function __construct(
        private readonly string $baseUrl,
        private readonly string $apiKey,
        private readonly ClientInterface $client,
        private readonly RequestFactoryInterface&StreamFactoryInterface $factory,
        private readonly int $attempts = 8,
    ) {
    }

    /**
     * Sends a message of a kind whose body is JSON: `send('poll', […])`.
     *
     * @template K of key-of<Sends>
     * @param K $kind
     * @param Sends[K] $message
     * @return SendAnswers[K]
     * @throws PalomaException
     */
    public function send(string $kind, array $message, ?string $idempotencyKey = null): array
    {
        /** @var SendAnswers[K] */
        return $this->request('POST', "/messages/send/{$kind}", body: $message, idempotencyKey: $idempotencyKey);
    }

    /**
     * @param TextMessage $message
     * @return Acknowledgement
     * @throws PalomaException
     */
    public function sendText(array $message, ?string $idempotencyKey = null): array
    {
        return $this->send('text', $message, $idempotencyKey);
    }

    /**
     * Sends a file. It goes through a temporary file on disk, never through memory as a whole.
     *
     * @param FileMessage $fields
     * @return Acknowledgement
     * @throws PalomaException
     */
    public function sendFile(string $path, array $fields, ?string $idempotencyKey = null): array
    {
        $boundary = bin2hex(random_bytes(16));
        $body = $this->multipart($path, $fields, $boundary);
        $type = "multipart/form-data; boundary={$boundary}";
        /** @var Acknowledgement */
        return $this->exchange('POST', '/messages/send/file', $body, $type, $idempotencyKey);
    }

    /**
     * Yields events without end, oldest first, and asks again after `$poll` seconds when there are no more.
     *
     * @param string|null $after the `id` of the last event that you handled; null begins with the oldest that is kept,
     *   "now" with the next
     * @param list<EventName> $types
     * @return \Generator<int, AnyEvent, mixed, never>
     * @throws EventGapException when events after the cursor are no longer kept
     * @throws PalomaException
     */
    public function events(
        ?string $after = null,
        array $types = [],
        ?string $sessionId = null,
        float $poll = 1.0,
    ): \Generator {
        while (true) {
            $query = ['types' => implode(',', $types) ?: null, 'sessionId' => $sessionId, 'after' => $after];
            /** @var EventPage $page */
            $page = $this->request('GET', '/events', $query);
            if ($page['gap']) {
                throw new EventGapException($after);
            }
            foreach ($page['data'] as $event) {
                yield $event;
            }
            if ($page['next'] === null) {
                self::pause($poll);
            }
            $after = $page['next'] ?? $after;
        }
    }

    /**
     * Calls any operation; the path without `/v1`. A POST has the same Idempotency-Key in all its tries.
     *
     * @param array<string, string|int|null> $query
     * @param array<string, mixed>|null $body
     * @throws PalomaException for what the gateway refuses
     * @throws ClientExceptionInterface when it cannot be reached
     */
    public function request(
        string $method,
        string $path,
        array $query = [],
        ?array $body = null,
        ?string $idempotencyKey = null,
    ): mixed {
        $search = http_build_query($query, encoding_type: PHP_QUERY_RFC3986);
        $stream = $body === null
            ? null
            : $this->factory->createStream(json_encode((object) $body, JSON_THROW_ON_ERROR | JSON_PRESERVE_ZERO_FRACTION));
        $path .= $search === '' ? '' : "?{$search}";
        return $this->exchange($method, $path, $stream, 'application/json', $idempotencyKey);
    }

    private function exchange(
        string $method,
        string $path,
        ?StreamInterface $body,
        string $type,
        ?string $idempotencyKey,
    ): mixed {
        $request = $this->factory->createRequest($method, rtrim($this->baseUrl, '/') . $path)
            ->withHeader('x-api-key', $this->apiKey);
        if ($body !== null) {
            $request = $request->withHeader('content-type', $type)->withBody($body);
        }
        if ($method === 'POST') {
            $request = $request->withHeader('idempotency-key', $idempotencyKey ?? bin2hex(random_bytes(16)));
        }
        for ($attempt = 1;; $attempt++) {
            $isLast = $attempt >= $this->attempts;
            $body?->rewind();
            try {
                $response = $this->client->sendRequest($request);
                $text = $response->getBody()->getContents();
            } catch (ClientExceptionInterface $error) {
                if ($isLast || !in_array($method, self::REPEATABLE, true)) {
                    throw $error;
                }
                self::pause(self::pauseAfter($attempt));
                continue;
            }
            $status = $response->getStatusCode();
            if ($status >= 200 && $status < 300) {
                return json_decode($text, true, flags: JSON_THROW_ON_ERROR);
            }
            $wait = self::retryAfter($response) ?? self::pauseAfter($attempt);
            // A quota of the day names hours: that is for the caller to decide.
            if ($isLast || !in_array($status, self::RETRIED, true) || $wait > self::LONGEST_WAIT) {
                $problem = json_decode($text, true);
                /** @var array<string, mixed> $problem */
                $problem = is_array($problem) ? $problem : [];
                throw new PalomaException($status, $problem);
            }
            self::pause($wait);
        }
    }

    /** @param array<string, string|int> $fields */
    private function multipart(string $path, array $fields, string $boundary): StreamInterface
    {
        $file = fopen($path, 'rb');
        $body = fopen('php://temp', 'w+b');
        if ($file === false || $body === false) {
            throw new \RuntimeException("{$path} cannot be read");
        }
        foreach ($fields as $name => $value) {
            fwrite($body, "--{$boundary}\r\ncontent-disposition: form-data; name=\"{$name}\"\r\n\r\n{$value}\r\n");
        }
        $name = strtr(basename($path), ['"' => '%22', "\r" => '%0D', "\n" => '%0A']);
        fwrite($body, "--{$boundary}\r\ncontent-disposition: form-data; name=\"file\"; filename=\"{$name}\"\r\n\r\n");
        stream_copy_to_stream($file, $body);
        fclose($file);
        fwrite($body, "\r\n--{$boundary}--\r\n");
        return $this->factory->createStreamFromResource($body);
    }

    private static function pauseAfter(int $attempt): float
    {
        return random_int(500, 1_000) / 1_000 * min(0.2 * 2 ** $attempt, 10);
    }

    private static function retryAfter(ResponseInterface $response): ?float
    {
        $value = $response->getHeaderLine('retry-after');
        return ctype_digit($value) ? (float) $value : null;
    }

    private static function pause(float $seconds): void
    {
        usleep(max(0, (int) ($seconds * 1_000_000)));
    }
}
