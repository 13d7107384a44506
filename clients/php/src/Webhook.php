<?php

declare(strict_types=1);

namespace Paloma;

/**
 * Where a webhook's request comes from.
 *
 * @phpstan-import-type AnyEvent from Types
 */
final class Webhook
{
    /**
     * Returns the event of a request that was signed with one of the secrets.
     *
     * @param string $body the body as it arrived
     * @param array<string, string|list<string>> $headers of any case, as `getallheaders()` or PSR-7 give them
     * @param string|list<string> $secrets one, or two during a rotation
     * @param int $tolerance seconds that the timestamp of Standard Webhooks may be away; a request without these headers
     *   is judged by `x-webhook-signature` alone
     * @return AnyEvent
     * @throws WebhookVerificationException
     */
    public static function verify(string $body, array $headers, string|array $secrets, int $tolerance = 300): array
    {
        $given = [];
        foreach ($headers as $name => $value) {
            $given[strtolower($name)] = is_array($value) ? implode(' ', $value) : $value;
        }
        $isGenuine = isset($given['webhook-signature'])
            ? self::isStandard($body, $given, (array) $secrets, $tolerance)
            : self::isPlain($body, $given, (array) $secrets);
        if (!$isGenuine) {
            throw new WebhookVerificationException('no signature of this request is valid');
        }
        /** @var AnyEvent */
        return json_decode($body, true, flags: JSON_THROW_ON_ERROR);
    }

    /**
     * @param array<string, string> $given
     * @param array<string> $secrets
     */
    private static function isStandard(string $body, array $given, array $secrets, int $tolerance): bool
    {
        $timestamp = $given['webhook-timestamp'] ?? '';
        if (!ctype_digit($timestamp) || abs(time() - (int) $timestamp) > $tolerance) {
            return false;
        }
        $signed = ($given['webhook-id'] ?? '') . ".{$timestamp}.{$body}";
        $expected = array_map(static function (string $secret) use ($signed): string {
            $key = base64_decode((string) preg_replace('/^whsec_/', '', $secret), true);
            if ($key === false) {
                throw new \InvalidArgumentException('a secret is not one of a webhook');
            }
            return 'v1,' . base64_encode(hash_hmac('sha256', $signed, $key, true));
        }, $secrets);
        return self::anyEqual(explode(' ', $given['webhook-signature']), $expected);
    }

    /**
     * @param array<string, string> $given
     * @param array<string> $secrets
     */
    private static function isPlain(string $body, array $given, array $secrets): bool
    {
        $signatures = array_intersect_key($given, ['x-webhook-signature' => 1, 'x-webhook-signature-previous' => 1]);
        $expected = array_map(static fn (string $secret): string => hash_hmac('sha256', $body, $secret), $secrets);
        return self::anyEqual($signatures, $expected);
    }

    /**
     * @param array<string> $signatures
     * @param array<string> $expected
     */
    private static function anyEqual(array $signatures, array $expected): bool
    {
        foreach ($signatures as $signature) {
            foreach ($expected as $one) {
                if (hash_equals($one, $signature)) {
                    return true;
                }
            }
        }
        return false;
    }
}
